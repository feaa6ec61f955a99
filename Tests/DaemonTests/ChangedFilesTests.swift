import Base
import Configuration
import DNSCache
import DNSWire
import Foundation
import ShellTestSupport
import Testing

@testable import Daemon
@testable import Forwarding
@testable import Transport
@testable import Upstreams

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

    /// Starts with these settings; whether something is so at last, after `body` ran in between.
    private func becomes(
        _ settings: Settings, _ isSo: @escaping @Sendable (borrowing Forwarder) -> Bool, between: () throws -> Void
    ) throws -> Bool {
        let loop = try EventLoop(label: "test")
        let forwarder = ForwarderLoop(
            loop: loop, cache: DNSCache(bytes: 1 << 20, seed: (1, 2)),
            local: LocalServers(listening: [], loop: loop, report: lines.report), lookup: ServerLookup(loop: loop),
            report: lines.report)
        var numbers = GroupNumbers()
        let prepared = try forwarder.prepare(settings, after: nil, &numbers, Provenance())
        try between()
        forwarder.begin(prepared)
        loop.start()
        defer {
            let isStopped = Gate()
            loop.submit { forwarder.close() }
            loop.stop { isStopped.open() }
            #expect(isStopped.wait())
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
        settings.fallback.hosts = ""
        settings.domains.bypassFile = try write("old.example\n", "names")
        let line = "the files of names were read again"
        let isRead = try becomes(settings) { [lines] _ in
            lines.all.contains { $0.contains(line) }
        } between: {
            _ = try write("new.example\n", "names")
        }
        #expect(isRead)
    }

    @Test func theHostsFile() throws {
        var settings = Settings()
        settings.fallback.hosts = try write("192.0.2.1 old.example\n", "hosts")
        let isRead = try becomes(settings) {
            $0.policy.reason(Name("new.example")!, .a) == .hosts
        } between: {
            _ = try write("192.0.2.1 new.example\n", "hosts")
        }
        #expect(isRead)
    }
}
