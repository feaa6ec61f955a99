import Base
import Dispatch
import Foundation
import Testing

@testable import Transport

@Suite struct SystemTests {
    @Test func theClockCountsFromTheStartOfTheMachine() throws {
        let text = try String(contentsOfFile: "/proc/uptime", encoding: .utf8)
        let uptime = try #require(Double(text.split(separator: " ")[0]))
        let now = Clock.now()
        #expect(abs(Double(now) / 1e9 - uptime) < 5)
        #expect(Clock.now() >= now)
    }

    @Test func randomNumbersAreSpread() {
        var random = Random()
        let ids = (0..<4096).map { _ in random.uint16() }
        // 4096 of 65,536: 3970 different ones are expected, deviation 11.
        #expect(Set(ids).count > 3850 && Set(ids).count < 4090)
        for bit in 0..<16 {
            let ones = ids.filter { $0 >> bit & 1 == 1 }.count
            #expect((1748...2348).contains(ones), "bit \(bit)")
        }
        #expect(random.uint64() != random.uint64())
    }

    @Test func anErrorIsOneLine() {
        #expect(SystemError("open", "/x", code: ENOENT).description == "open /x: No such file or directory")
        #expect(SystemError("recvmmsg", code: ENOMEM).description == "recvmmsg: Cannot allocate memory")
        #expect(SystemError("connect", code: 9999).description == "connect: Unknown error 9999")
        #expect(
            SystemError("eventfd", code: EMFILE).description
                == "eventfd: Too many open files, LimitNOFILE= of the unit or ulimit -n sets how many there may be")
        #expect(SystemError("a", code: ENOENT).isNotFound && !SystemError("a", code: EACCES).isNotFound)
    }

    @Test(
        "whose failure it is",
        arguments: [
            ("connect", EAGAIN, true), ("socket", EMFILE, true), ("socket", ENFILE, true), ("socket", ENOMEM, true),
            ("sendmsg", ENOBUFS, true), ("recv", EAGAIN, false), ("connect", EADDRNOTAVAIL, false),
            ("bind", EADDRNOTAVAIL, false), ("connect", ENETUNREACH, false), ("connect", EHOSTUNREACH, false),
            ("connect", ECONNREFUSED, false), ("connect", EPERM, false), ("recv", ECONNRESET, false),
        ])
    func isOwn(_ call: String, _ code: Int32, _ isOwn: Bool) {
        #expect(SystemError(call, "[2001:db8::1]:853", code: code).isOwn == isOwn)
    }

    @Test func aPortIsNotAPath() {
        #expect("\(SystemError("connect", "192.0.2.1:53", code: EAGAIN))".hasSuffix(": Every local port is in use"))
        #expect(
            "\(SystemError("connect", "/run/store", code: EAGAIN))"
                == "connect /run/store: Resource temporarily unavailable")
    }

    @Test(arguments: ["1.2.3.4:53", "255.0.0.1:65535", "0.0.0.0:0", "[2001:db8::1:2]:853", "[::ffff:1.2.3.4]:1"])
    func socketAddressesAreTheKernels(text: String) throws {
        let endpoint = try #require(Endpoint(text))
        let address = SocketAddress(endpoint)
        #expect(address.endpoint == endpoint)
        #expect(address.description == text)
        // Against what inet_pton makes.
        withAddress(endpoint) { name, length in
            #expect(SocketAddress(reading: name, length: Int(length)) == address)
            #expect(SocketAddress(reading: name, length: Int(length) - 1) == nil)
            let storage = UnsafeMutableRawPointer.allocate(byteCount: SocketAddress.storageSize, alignment: 8)
            defer { storage.deallocate() }
            #expect(address.write(to: storage) == length)
            #expect(memcmp(storage, name, Int(length)) == 0)
        }
    }

    @Test func anAddressOfAnotherFamilyIsNone() {
        var name = sockaddr_storage()
        name.ss_family = sa_family_t(AF_UNIX)
        #expect(withUnsafeBytes(of: &name) { SocketAddress(reading: $0.baseAddress!, length: 110) } == nil)
    }

    @Test func theScopeOfALinkLocalPeerIsKept() {
        var address = SocketAddress(Endpoint("[fe80::1]:53")!)
        address.scope = 7
        let storage = UnsafeMutableRawPointer.allocate(byteCount: SocketAddress.storageSize, alignment: 8)
        defer { storage.deallocate() }
        #expect(address.write(to: storage) == 28)
        #expect(storage.load(as: sockaddr_in6.self).sin6_scope_id == 7)
        #expect(SocketAddress(reading: storage, length: 28) == address)
    }

    @Test func aZoneIsAnInterfaceThatThereIs() throws {
        let index = UInt32(if_nametoindex("lo"))
        for (zone, scope) in [("lo", index), ("\(index)", index), ("4294967295", .max)] {
            let endpoint = try #require(Endpoint(address: "fe80::1%\(zone)", port: 53, allowsZone: true))
            #expect(try SocketAddress(reaching: endpoint).scope == scope)
        }
        for zone in ["no-such-if", "0", "4294967296"] {
            let endpoint = try #require(Endpoint(address: "fe80::1%\(zone)", port: 53, allowsZone: true))
            #expect(throws: SystemError("if_nametoindex", zone, code: ENODEV)) {
                try SocketAddress(reaching: endpoint)
            }
        }
    }

    @Test func theMachinesAddressesAreThere() throws {
        let addresses = try Interfaces.addresses()
        #expect(addresses.contains(Endpoint(loopback, port: 0)))
        // One line each: 32 hexadecimal digits, index, prefix length, scope, flags, name.
        let lines = (try? String(contentsOfFile: "/proc/net/if_inet6", encoding: .utf8)) ?? ""
        for line in lines.split(separator: "\n") {
            let digits = Array(line.prefix(32))
            let octets = stride(from: 0, to: 32, by: 2).map { UInt8(String(digits[$0...$0 + 1]), radix: 16)! }
            let read = IPAddress(bytes: octets.span)
            let address = try #require(read)
            let name = line.split(separator: " ").last.flatMap { Zone($0) }
            let zone = address.isIPv6LinkLocal ? name : nil
            #expect(addresses.contains(Endpoint(address, port: 0, zone: zone)))
        }
    }

    @Test func aDescriptorIsClosedOnceAndAtTheEndOfItsLife() {
        var pipes: [Int32] = [0, 0]
        #expect(pipe(&pipes) == 0)
        // The other end hangs up exactly when the descriptor is closed; its number may be used again by other tests.
        func isHungUp() -> Bool {
            var wait = pollfd(fd: pipes[0], events: 0, revents: 0)
            return poll(&wait, 1, 0) == 1 && Int32(wait.revents) & POLLHUP != 0
        }
        do {
            let owner = Descriptor(adopting: pipes[1])
            #expect(!isHungUp())
            withExtendedLifetime(owner.raw) {}
        }
        #expect(isHungUp())
        var closed = Descriptor(adopting: pipes[0])
        closed.close()
        closed.close()
        let raw = closed.raw
        #expect(raw == -1)
    }

    /// In a process of its own: a mistake would end it.
    @Test func signalsBecomeCalls() async {
        await #expect(processExitsWith: .success) {
            SignalSource.ignoreBrokenPipe()
            let journal = Journal<Signal>()
            let gate = Gate()
            let source = SignalSource { signal in
                journal.append(signal)
                gate.open()
            }
            for number in [SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGHUP] {
                kill(getpid(), number)
                if number != SIGPIPE, !gate.wait() { exit(1) }
            }
            withExtendedLifetime(source) {}
            exit(journal.all == [.terminate, .interrupt, .hangup, .user1, .hangup] ? 0 : 2)
        }
    }
}

@Suite struct SignalTests {
    /// A signal that comes while the sources are being made waits for them. In a process of its own: it could be ended.
    @Test func noSignalIsLostWhileTheyAreTakenOver() async {
        await #expect(processExitsWith: .success) {
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGTERM)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
            pthread_kill(pthread_self(), SIGTERM)
            let gate = Gate()
            let source = SignalSource { if $0 == .terminate { gate.open() } }
            pthread_sigmask(SIG_UNBLOCK, &signals, nil)
            let hasCome = gate.wait()
            withExtendedLifetime(source) {}
            exit(hasCome ? 0 : 1)
        }
    }
}

@Suite final class SystemFileTests {
    private let path = NSTemporaryDirectory() + "systemfile-\(UUID().uuidString)"

    deinit { unlink(path) }

    @Test func aFileIsReadWholeUpToTheLimit() throws {
        let contents = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        try Data(contents).write(to: URL(fileURLWithPath: path))
        #expect(try SystemFile.read(path, limit: 100_000) == contents)
        #expect(try SystemFile.read(path, limit: 1 << 30) == contents)
        #expect(throws: SystemError("read", path, code: EFBIG)) { try SystemFile.read(self.path, limit: 99_999) }
        #expect(throws: SystemError.self) { try SystemFile.read("/dev/zero", limit: 1000) }
        try Data().write(to: URL(fileURLWithPath: path))
        #expect(try SystemFile.read(path, limit: 0) == [])
    }

    @Test func filesOfUnknownSizeAreRead() throws {
        #expect(try SystemFile.read("/proc/self/status", limit: 100_000).starts(with: bytes("Name:")))
        #expect(try SystemFile.read("/dev/null", limit: 10) == [])
    }

    /// As `<(…)` of a shell, whose writer takes its time.
    @Test func aPipeThatAProgramWritesToIsReadWhereThatMayTakeTime() throws {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let path = "/dev/fd/\(ends[0])"
        DispatchQueue(label: "writer").async { [ends] in
            for part in ["one ", "two"] { _ = write(ends[1], part, part.utf8.count) }
            close(ends[1])
        }
        #expect(try SystemFile.read(path, limit: 100, waits: true) == bytes("one two"))
        // The writer is gone, as one that had nothing to say would be.
        #expect(try SystemFile.read(path, limit: 100, waits: true) == [])
        close(ends[0])
    }

    @Test func aDiskThatHangsIsNotWaitedFor() throws {
        try Data("text".utf8).write(to: URL(fileURLWithPath: path))
        let octets = try SystemFile.soon(path, milliseconds: 60_000) { path throws(SystemError) in
            try SystemFile.read(path, limit: 4)
        }
        #expect(octets == Array("text".utf8))
        #expect(throws: SystemError("open", "gone", code: ENOENT)) {
            try SystemFile.soon("gone", milliseconds: 60_000) { path throws(SystemError) in
                try SystemFile.read(path, limit: 4)
            }
        }
        let hangs = Gate()
        #expect(throws: SystemError("read", "disk", code: ETIME)) {
            try SystemFile.soon("disk", milliseconds: 1) { _ throws(SystemError) in hangs.wait() }
        }
        hangs.open()
    }

    @Test func nobodyWaitsForAPipeOtherwise() throws {
        #expect(mkfifo(path, 0o600) == 0)
        #expect(throws: SystemError("open", path, code: EINVAL)) { try SystemFile.read(self.path, limit: 100) }
        #expect(throws: SystemError("open", path, code: ENXIO)) {
            try SystemFile.read(self.path, limit: 100, waits: true)
        }
        let writer = open(path, O_RDWR)
        #expect(throws: SystemError("open", path, code: EINVAL)) { try SystemFile.read(self.path, limit: 100) }
        close(writer)
        #expect("\(SystemError("open", "/p", code: EINVAL))" == "open /p: Not a regular file")
    }

    @Test func aStampHoldsUntilTheFileIsAnother() throws {
        let missing = FileStamp(path)
        #expect(missing.holds)
        #expect(FileStamp("/proc/self/exe").holds)
        let begun = WallClock.unixMicroseconds()
        try Data("a".utf8).write(to: URL(fileURLWithPath: path))
        #expect(!missing.holds)
        // Something may be written to it at the same time once more. By the clock of before, however long the writing took.
        let young = FileStamp(path) { begun }
        #expect(!young.holds)
        usleep(100_000)
        let old = FileStamp(path)
        #expect(old.holds)
        try Data("b".utf8).write(to: URL(fileURLWithPath: path))
        #expect(!old.holds)
    }

    /// A file that has changed is read at once if it is certain that it is whole, else when it has been quiet.
    @Test func whatToDoWithAFileThatWasRead() throws {
        let soon = WallClock.unixMicroseconds() + 1_000_000
        let later = soon + 9_000_000
        func write(_ text: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }
        #expect(FileStamp(path).look(mayHaveMissed: false) == .keep)
        let missing = FileStamp(path)
        try write("a")
        #expect(missing.look(mayHaveMissed: false, at: soon) == .wait)
        #expect(missing.look(mayHaveMissed: true, at: soon) == .wait)
        #expect(missing.look(mayHaveMissed: false, at: later) == .read)
        usleep(100_000)
        let stamp = FileStamp(path)
        #expect(stamp.look(mayHaveMissed: false) == .keep && stamp.look(mayHaveMissed: true) == .keep)
        #expect(chmod(path, 0o600) == 0 && chmod(path, 0o644) == 0)
        #expect(stamp.look(mayHaveMissed: false, at: soon) == .read)
        try write("")
        #expect(
            stamp.look(mayHaveMissed: false, at: soon) == .wait && stamp.look(mayHaveMissed: true, at: soon) == .wait)
        #expect(stamp.look(mayHaveMissed: false, at: later) == .read)
        try Data("b".utf8).write(to: URL(fileURLWithPath: path + ".new"))
        #expect(rename(path + ".new", path) == 0)
        #expect(
            stamp.look(mayHaveMissed: false, at: soon) == .wait && stamp.look(mayHaveMissed: true, at: soon) == .read)
        #expect(unlink(path) == 0)
        #expect(stamp.look(mayHaveMissed: false, at: soon) == .read)
    }

    @Test func aFileThatIsPutInPlaceIsNotBeingWritten() throws {
        let soon = WallClock.unixMicroseconds() + 3_000_000
        func write(_ path: String) throws { try Data("a".utf8).write(to: URL(fileURLWithPath: path)) }
        let missing = FileStamp(path)
        #expect(!missing.mayBeWritten(since: nil, at: soon))
        try write(path)
        let stamp = FileStamp(path)
        #expect(!stamp.mayBeWritten(since: stamp, at: soon))
        try write(path + ".new")
        #expect(rename(path + ".new", path) == 0)
        let placed = FileStamp(path)
        for last in [nil, missing, stamp] {
            #expect(placed.mayBeWritten(since: last, at: soon))
            #expect(!placed.mayBeWritten(since: last, at: soon + 9_000_000))
        }
        #expect(chmod(path, 0o600) == 0)
        #expect(!FileStamp(path).mayBeWritten(since: placed, at: soon))
        usleep(100_000)
        try Data("b".utf8).write(to: URL(fileURLWithPath: path))
        #expect(FileStamp(path).mayBeWritten(since: placed, at: soon))
    }

    /// File systems have times that do not fit into 64 bits of nanoseconds.
    @Test(arguments: [10_413_792_000.0, 15_000_000_000, -2_000_000_000, -10_000_000_000])
    func aFileMayHaveAnyTime(_ seconds: Double) throws {
        try Data("a".utf8).write(to: URL(fileURLWithPath: path))
        let before = FileStamp(path)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: seconds)], ofItemAtPath: path)
        #expect(!before.holds)
        let later = WallClock.unixMicroseconds() + 9_000_000
        #expect(before.look(mayHaveMissed: false, at: later) == .read)
        usleep(100_000)
        #expect(FileStamp(path).holds)
    }

    @Test func whatCannotBeReadSaysWhy() {
        #expect(throws: SystemError("open", "/no/such/file", code: ENOENT)) {
            try SystemFile.read("/no/such/file", limit: 10)
        }
        #expect(throws: SystemError("read", "/", code: EISDIR)) { try SystemFile.read("/", limit: 10) }
    }
}
