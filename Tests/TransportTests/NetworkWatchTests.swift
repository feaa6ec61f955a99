import Base
import Foundation
import Synchronization
import Testing

@testable import Transport

/// A thread that lives in a network namespace of its own, with nothing in it but a loopback link that is down. Sockets
/// made on it, and programs started from it, stay there.
private final class Elsewhere: @unchecked Sendable {
    private let requests = Mutex<[@Sendable () -> Void]>([])
    private let wakeUp = DispatchSemaphore(value: 0)
    private let isEnding = Atomic(false)

    /// Whether this process may make one: root may, unless it is a container's that lacks the capability.
    static let isAllowed: Bool = {
        let made = Elsewhere()
        made?.end()
        return made != nil
    }()
    static let reason: Comment = "a network namespace of its own needs root"

    /// Nil where it is not allowed.
    init?() {
        let begun = DispatchSemaphore(value: 0)
        let isThere = Journal<Bool>()
        let thread = Thread { [self] in
            isThere.append(Self.unshareNetwork())
            begun.signal()
            while true {
                wakeUp.wait()
                if isEnding.load(ordering: .acquiring) { return }
                let request = requests.withLock { $0.removeFirst() }
                request()
            }
        }
        thread.start()
        begun.wait()
        guard isThere.all == [true] else {
            end()
            return nil
        }
    }

    /// unshare(CLONE_NEWNET), which glibc declares under _GNU_SOURCE alone.
    private static func unshareNetwork() -> Bool {
        guard let symbol = dlsym(nil, "unshare") else { return false }
        return unsafeBitCast(symbol, to: (@convention(c) (Int32) -> Int32).self)(0x4000_0000) == 0
    }

    func end() {
        isEnding.store(true, ordering: .releasing)
        wakeUp.signal()
    }

    func run<R: Sendable>(_ body: @escaping @Sendable () throws -> R) throws -> R {
        let results = Journal<Result<R, any Error>>()
        let gate = Gate()
        requests.withLock {
            $0.append {
                results.append(Result { try body() })
                gate.open()
            }
        }
        wakeUp.signal()
        guard gate.wait() else { throw POSIXError(.ETIMEDOUT) }
        return try results.all[0].get()
    }

    /// Runs the program `ip` there.
    func ip(_ arguments: String) throws {
        let status = try run {
            var words = (["ip"] + arguments.split(separator: " ").map(String.init)).map { strdup($0) } + [nil]
            defer { for word in words { free(word) } }
            var child: pid_t = 0
            guard posix_spawn(&child, "/sbin/ip", nil, nil, &words, environ) == 0 else { return Int32(-1) }
            var status: Int32 = 0
            waitpid(child, &status, 0)
            return status
        }
        if status != 0 { throw POSIXError(.EINVAL) }
    }
}

@Suite struct NetworkWatchTests {
    @Test func itOpensWithoutPrivilegesAndStops() throws {
        let loop = try EventLoop(label: "test loop")
        loop.start()
        try loop.inTurn { loop in
            let watch = try NetworkWatch(in: loop) {}
            watch.stop()
        }
        loop.end()
    }

    @Test(.enabled(if: Elsewhere.isAllowed, Elsewhere.reason)) func changesAreToldAndRepetitionsAreNot() throws {
        let elsewhere = try #require(Elsewhere())
        defer { elsewhere.end() }
        let loop = try EventLoop(label: "test loop")
        let changes = Counters(1)
        _ = try elsewhere.run { try NetworkWatch(in: loop) { changes.add(0) } }
        loop.start()
        defer { loop.end() }

        /// The kernel has queued its messages when `ip` ends, and they come before submitted work.
        func isTold(_ commands: String...) throws -> Bool {
            let before = changes.all[0]
            for command in commands { try elsewhere.ip(command) }
            try loop.inTurn { _ in }
            return changes.all[0] > before
        }
        // Its addresses come with it.
        #expect(try isTold("link set lo up"))
        #expect(try isTold("address add 192.0.2.7/24 dev lo"))
        #expect(try !isTold("address change 192.0.2.7/24 dev lo valid_lft 900 preferred_lft 600"))
        #expect(try isTold("-6 address add 2001:db8::7/64 dev lo nodad"))
        // The kernel completes an IPv6 address in a work queue, some time after `ip` has ended.
        for _ in 0..<20 { _ = try isTold("-6 address show dev lo") }
        #expect(try !isTold("-6 address change 2001:db8::7/64 dev lo valid_lft 900 preferred_lft 600"))
        #expect(try isTold("route add 198.51.100.0/24 dev lo"))
        #expect(try !isTold("route replace 198.51.100.0/24 dev lo"))
        #expect(try isTold("route replace 198.51.100.0/24 dev lo src 192.0.2.7"))
        #expect(try isTold("route replace 198.51.100.0/24 dev lo"))
        #expect(try isTold("-6 route add 2001:db8:1::/48 dev lo"))
        #expect(try !isTold("-6 route replace 2001:db8:1::/48 dev lo expires 100"))
        #expect(try isTold("-6 route del 2001:db8:1::/48"))
        for family in ["-4", "-6"] {
            #expect(try isTold("\(family) rule add not fwmark 51820 table 51820"))
            #expect(try isTold("\(family) rule del not fwmark 51820 table 51820"))
        }
        #expect(try !isTold("link set lo mtu 60000"))
        #expect(try isTold("link set lo down"))
        #expect(try isTold("link set lo up"))
        #expect(try isTold("route add 198.51.100.0/24 dev lo"))
        // A tunnel without an address: its routes go with it, and the kernel does not say so.
        _ = try isTold("link add tunnel type veth peer name far", "link set far up", "link set tunnel up")
        #expect(try isTold("route add default dev tunnel"))
        #expect(try isTold("address add 192.0.2.8/24 dev lo"))
        #expect(try isTold("link set tunnel down"))
        #expect(try !isTold("link set far down"))
    }

    /// More than the kernel keeps for a reader that does not read.
    @Test(.enabled(if: Elsewhere.isAllowed, Elsewhere.reason)) func whatIsLostIsAChange() throws {
        let elsewhere = try #require(Elsewhere())
        defer { elsewhere.end() }
        let loop = try EventLoop(label: "test loop")
        let changes = Counters(1)
        _ = try elsewhere.run { try NetworkWatch(in: loop) { changes.add(0) } }
        try elsewhere.ip("link set lo up")
        let batch = NSTemporaryDirectory() + "network-watch-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: batch) }
        let lines = (0..<2000).map { "route add 10.\($0 / 256).\($0 % 256).0/24 dev lo\n" }
        try lines.joined().write(toFile: batch, atomically: true, encoding: .utf8)
        try elsewhere.ip("-batch \(batch)")
        loop.start()
        try loop.inTurn { _ in }
        #expect(changes.all[0] >= 1)
        // What it has learnt again is known.
        let before = changes.all[0]
        try elsewhere.ip("address change 127.0.0.1/8 dev lo valid_lft 900 preferred_lft 600")
        try loop.inTurn { _ in }
        #expect(changes.all[0] == before)
        loop.end()
    }

    @Test(.enabled(if: Elsewhere.isAllowed, Elsewhere.reason)) func routesOfEachFamily() throws {
        let elsewhere = try #require(Elsewhere())
        defer { elsewhere.end() }
        func families() throws -> [Bool] {
            try elsewhere.run {
                let families = Routes.families()!
                return [families.ipv4, families.ipv6]
            }
        }
        #expect(try families() == [false, false])
        for command in ["link set lo up", "address add 192.0.2.7/24 dev lo"] { try elsewhere.ip(command) }
        #expect(try families() == [false, false])
        try elsewhere.ip("route add default dev lo")
        #expect(try families() == [true, false])
        try elsewhere.ip("-6 address add 2001:db8::7/64 dev lo nodad")
        try elsewhere.ip("-6 route add default dev lo")
        #expect(try families() == [true, true])
        try elsewhere.ip("route del default")
        #expect(try families() == [false, true])
    }

    @Test func thisMachinesRoutesAreWhatTheKernelSays() throws {
        let families = Routes.families()!
        let ipv4 = try String(contentsOfFile: "/proc/net/route", encoding: .utf8).split(separator: "\n").dropFirst()
        if ipv4.isEmpty { #expect(!families.ipv4) }
        // Destination and mask 0: the default route.
        let hasDefault = ipv4.contains {
            $0.split(separator: "\t")[1] == "00000000" && $0.split(separator: "\t")[7] == "00000000"
        }
        if hasDefault { #expect(families.ipv4) }
    }
}
