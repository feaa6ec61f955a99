import Base
import Configuration
import DNSWire
import Foundation
import ShellTestSupport
import Testing

@testable import Daemon
@testable import Forwarding
@testable import Transport

/// Files that change while their contents are taken over: after they were read, and before they are watched.
@Suite final class ChangedFilesTests {
    private let folder = NSTemporaryDirectory() + "changed-\(UUID().uuidString)"
    private let lines = LogLines()

    init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }
    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private func write(_ text: String, _ name: String) throws -> String {
        try text.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
        return "\(folder)/\(name)"
    }

    private typealias Prepare = () throws -> SettingsInEffect.Prepared

    /// Starts with these settings; whether something is so at last, after `between` ran behind the reading of files.
    private func becomes(
        _ settings: Settings, _ isSo: @escaping @Sendable (borrowing Forwarder) -> Bool,
        preparing: (Prepare) throws -> SettingsInEffect.Prepared = { try $0() }, between: () throws -> Void = {}
    ) throws -> Bool {
        let forwarder = try ForwarderLoop(report: lines.report)
        let loop = forwarder.loop
        var numbers = GroupNumbers()
        let prepared = try preparing { try forwarder.prepare(settings, after: nil, &numbers, Provenance()) }
        try between()
        forwarder.begin(prepared)
        loop.start()
        defer {
            loop.submit { forwarder.close() }
            expectEnd { loop.stop($0) }
        }
        for _ in 0..<1000 {
            let seen = Arrivals<Bool>()
            loop.submit { seen.append(forwarder.look { brain, _ in isSo(brain) }) }
            if seen.next() == true { return true }
            usleep(10_000)
        }
        return false
    }

    @Test func aListOfNames() throws {
        var settings = Settings()
        settings.fallback.hosts = []
        settings.domains.bypassFile = [try write("old.example\n", "names")]
        let isRead = try becomes(settings) { [lines] _ in
            lines.all.contains { $0.contains("the files of names were read again") }
        } between: {
            _ = try write("new.example\n", "names")
        }
        #expect(isRead)
    }

    @Test func aFileThatTwoGroupsReadIsNamedOnce() throws {
        let path = try write("old.example\n", "names")
        let settings = try Settings.load(
            """
            [fallback]
            hosts = ""
            servers = ["192.0.2.1"]
            [upstreams.ads]
            answer = "nxdomain"
            domainsFile = "\(path)"
            [upstreams.others]
            answer = "nodata"
            domainsFile = "\(path)"
            """)
        let isRead = try becomes(settings) { [lines] _ in
            lines.all.contains { $0.hasSuffix("the files of names were read again: \(path)") }
        } between: {
            _ = try write("new.example\n", "names")
        }
        #expect(isRead)
    }

    /// The file does not change: that there were no descriptors at the start is reason enough to read it again.
    @Test func theHostsFileForWhichThereWasNoDescriptor() async {
        await #expect(processExitsWith: .success) {
            let tests = try ChangedFilesTests()
            let descriptors = __rlimit_resource_t(7)
            var settings = Settings()
            settings.fallback.hosts = [try tests.write("192.0.2.1 nas.example\n", "hosts")]
            var before = rlimit()
            getrlimit(descriptors, &before)
            var none = rlimit(rlim_cur: 0, rlim_max: before.rlim_max)
            let isRead = try tests.becomes(settings) {
                $0.policy.reason(Name("nas.example")!, .a) == .hosts
            } preparing: { prepare in
                // A young file is read again in any case.
                usleep(100_000)
                setrlimit(descriptors, &none)
                defer { setrlimit(descriptors, &before) }
                let prepared = try prepare()
                guard prepared.local.isShort else { exit(1) }
                return prepared
            }
            guard isRead else { exit(2) }
        }
    }

    @Test("a reload whose reading began in the former network does not bring its servers back")
    func theServersOfAnotherNetwork() throws {
        let loop = try EventLoop(label: "test")
        let local = LocalServers(listening: [], loop: loop, report: lines.report)
        let path = try write("nameserver 192.0.2.1\n", "resolv.conf")
        let settings = {
            var settings = Settings()
            (settings.fallback.hosts, settings.fallback.resolvConf) = ([], [path])
            return settings
        }()
        let (changes, outcomes) = (Arrivals<Bool>(), Arrivals<(isOther: Bool, servers: [Server])>())
        local.serversChanged = { changes.append(true) }
        let former = local.read(settings, after: nil)
        #expect(local.apply(settings, former))
        _ = try write("nameserver 192.0.2.2\n", "resolv.conf")
        local.networkChanged()
        loop.start()
        #expect(changes.next() == true)
        loop.submit { outcomes.append((local.apply(settings, former), local.servers(of: settings.fallback.group))) }
        let outcome = outcomes.next()
        #expect(outcome?.isOther == false)
        #expect(outcome?.servers == [Server(Endpoint(.v4(192, 0, 2, 2), port: 53))])
        loop.submit { local.stop() }
        expectEnd { loop.stop($0) }
    }

    @Test("a reload with a further hosts file while another one is written gives up none of its names")
    func anotherHostsFileWhileOneIsWritten() throws {
        let loop = try EventLoop(label: "test")
        let local = LocalServers(listening: [], loop: loop, report: lines.report)
        func apply(_ files: [String], after old: Settings?) -> Settings {
            var settings = Settings()
            (settings.fallback.hosts, settings.fallback.resolvConf) = (files, [])
            _ = local.apply(settings, local.read(settings, after: old))
            return settings
        }
        let first = try write("192.0.2.1 nas.example\n", "first")
        let before = apply([first], after: nil)
        try "".write(toFile: first, atomically: false, encoding: .utf8)
        _ = apply([first, try write("192.0.2.2 new.example\n", "second")], after: before)
        for name in ["nas.example", "new.example"] { #expect(local.hosts.allNames.contains(Name(name)!)) }
        loop.start()
        loop.submit { local.stop() }
        expectEnd { loop.stop($0) }
    }

    @Test("names stay while a file is written, and no longer than a minute", arguments: [(0, 8), (20, 28), (100, 60)])
    func aLackOfHostsEnds(_ row: (written: UInt64, end: UInt64)) {
        var (lack, now): (FileLack?, UInt64) = (FileLack(at: 0), 0)
        while let current = lack {
            now += 4
            lack = current.continued(isUnfinished: now <= row.written, at: now * 1_000_000_000)
        }
        #expect(now == row.end)
    }

    @Test func theHostsFile() throws {
        var settings = Settings()
        settings.fallback.hosts = [try write("192.0.2.1 old.example\n", "hosts")]
        let isRead = try becomes(settings) {
            $0.policy.reason(Name("new.example")!, .a) == .hosts
        } between: {
            _ = try write("192.0.2.1 new.example\n", "hosts")
        }
        #expect(isRead)
    }
}
