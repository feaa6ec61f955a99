import Base
import Dispatch
import Foundation
import Synchronization
import Transport

let loopback = IPAddress.v4(127, 0, 0, 1)

/// A blocking UDP client made of plain system calls: what the daemon's clients are.
final class PlainClient {
    let descriptor: Int32

    init(_ family: Int32 = AF_INET) {
        descriptor = socket(family, Int32(SOCK_DGRAM.rawValue), 0)
        precondition(descriptor >= 0)
        // A reply that never comes must fail the test, not hang it.
        var time = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    func send(_ bytes: [UInt8], to endpoint: Endpoint) {
        let sent = withAddress(endpoint) { sendto(descriptor, bytes, bytes.count, 0, $0, $1) }
        precondition(sent == bytes.count, "sendto: \(errno)")
    }

    /// One datagram and who sent it; nil after ten seconds.
    func receive() -> (bytes: [UInt8], from: String)? {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        var name = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var count: Int
        // With a time limit it ends with EINTR when the process has been stopped meanwhile.
        repeat {
            count = withUnsafeMutablePointer(to: &name) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    recvfrom(descriptor, &bytes, bytes.count, 0, $0, &length)
                }
            }
        } while count < 0 && errno == EINTR
        guard count >= 0 else { return nil }
        var host = [CChar](repeating: 0, count: 64)
        var port = [CChar](repeating: 0, count: 16)
        withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = getnameinfo($0, length, &host, 64, &port, 16, NI_NUMERICHOST | NI_NUMERICSERV)
            }
        }
        let text = [host, port].map { String(decoding: $0.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self) }
        return (Array(bytes[..<count]), text.joined(separator: " "))
    }
}

/// An address made by inet_pton, not by the code under test.
func withAddress<R>(_ endpoint: Endpoint, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutableBytes(of: &storage) { bytes in
        if endpoint.address.isIPv4 {
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = endpoint.port.bigEndian
            inet_pton(AF_INET, endpoint.address.description, &name.sin_addr)
            bytes.storeBytes(of: name, as: sockaddr_in.self)
        } else {
            var name = sockaddr_in6()
            name.sin6_family = sa_family_t(AF_INET6)
            name.sin6_port = endpoint.port.bigEndian
            inet_pton(AF_INET6, endpoint.address.description, &name.sin6_addr)
            bytes.storeBytes(of: name, as: sockaddr_in6.self)
            length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        }
    }
    return withUnsafePointer(to: &storage) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
    }
}

/// Gives what is read to a closure.
struct ClosureReceiver: DatagramReceiver {
    let body: @Sendable (borrowing ReceiveBatch, inout SendBatch) -> Void

    mutating func receive(_ batch: borrowing ReceiveBatch, _ replies: inout SendBatch) { body(batch, &replies) }
}

extension LingeringReader where Receiver == ClosureReceiver {
    convenience init(
        _ socket: DatagramSocket, label: String, isInTheWay: @escaping @Sendable () -> Bool = { false },
        receive: @escaping @Sendable (borrowing ReceiveBatch, inout SendBatch) -> Void
    ) {
        self.init(socket, label: label, isInTheWay: isInTheWay, receiver: ClosureReceiver(body: receive))
    }
}

/// An echo of the parts under test: every datagram goes back to its sender, from the address it was sent to.
final class EchoServer: Sendable {
    let sockets: [DatagramSocket]
    let readers: [LingeringReader<ClosureReceiver>]
    /// Datagrams that each reader has seen.
    let seen: Counters

    init(_ endpoint: Endpoint, count: Int = 1) throws {
        let seen = Counters(count)
        sockets = try DatagramSocket.bind(endpoint, count: count)
        readers = sockets.enumerated().map { index, socket in
            LingeringReader(socket, label: "echo \(index)") { batch, replies in
                for slot in 0..<batch.count {
                    let bytes = batch.bytes(slot)
                    _ = replies.next().update(fromContentsOf: bytes)
                    replies.commit(bytes.count, to: batch.sender(slot), from: batch.local(slot))
                    seen.add(index)
                }
            }
        }
        self.seen = seen
        for reader in readers { try reader.start() }
    }

    var endpoint: Endpoint { sockets[0].local }

    /// Returns when all readers have let go.
    func stop() {
        let group = DispatchGroup()
        for reader in readers {
            group.enter()
            reader.stop { group.leave() }
        }
        group.wait()
    }
}

final class Counters: Sendable {
    private let values: Mutex<[Int]>
    init(_ count: Int) { values = Mutex(Array(repeating: 0, count: count)) }
    func add(_ index: Int) { values.withLock { $0[index] += 1 } }
    var all: [Int] { values.withLock { $0 } }
}

/// What a loop's handlers saw, in order.
final class Journal<Entry: Sendable>: Sendable {
    private let entries = Mutex<[Entry]>([])
    func append(_ entry: Entry) { entries.withLock { $0.append(entry) } }
    var all: [Entry] { entries.withLock { $0 } }
}

/// A signal between threads that fails the test instead of hanging it.
struct Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    func open() { semaphore.signal() }
    /// False after ten seconds.
    func wait() -> Bool { semaphore.wait(timeout: .now() + 10) == .success }
}

extension EventLoop {
    /// Runs `body` in a turn and returns what it returns.
    func inTurn<R: Sendable>(_ body: @escaping @Sendable (EventLoop) throws -> R) throws -> R {
        let results = Journal<Result<R, any Error>>()
        let gate = Gate()
        submit { [self] in
            results.append(Result { try body(self) })
            gate.open()
        }
        guard gate.wait() else { throw POSIXError(.ETIMEDOUT) }
        return try results.all[0].get()
    }

    /// Calls `ready` when our end of a pair can be read.
    @discardableResult
    func observe(
        _ pair: SocketPair, givesWay: Bool = false, _ ready: @escaping (Readiness) -> Void
    ) throws -> Registration {
        try register(pair.ours, .readable, givesWay: givesWay, ClosureHandler(ready))
    }

    /// Stops, and returns when all is released.
    func end() {
        let gate = Gate()
        stop { gate.open() }
        precondition(gate.wait())
    }
}

/// A handler made of a closure. Confined to its loop.
final class ClosureHandler: EventHandler, @unchecked Sendable {
    var body: (Readiness) -> Void
    init(_ body: @escaping (Readiness) -> Void = { _ in }) { self.body = body }
    func ready(_ readiness: Readiness) { body(readiness) }
}

/// Two connected sockets, nonblocking.
final class SocketPair: @unchecked Sendable {
    var ours: Descriptor
    var theirs: Descriptor

    init() {
        var pair: [Int32] = [0, 0]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        precondition(socketpair(AF_UNIX, type, 0, &pair) == 0)
        ours = Descriptor(adopting: pair[0])
        theirs = Descriptor(adopting: pair[1])
    }

    /// Makes `ours` readable.
    func poke() { precondition(write(theirs.raw, [1], 1) == 1) }
    /// Makes `ours` unreadable.
    func drain() {
        var byte: UInt8 = 0
        while read(ours.raw, &byte, 1) == 1 {}
    }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
