import Base
import Foundation
import Synchronization
import Testing

@testable import Transport

/// A connection that sends back what it receives. Confined to its loop.
private final class EchoConnection: EventHandler, @unchecked Sendable {
    var socket: StreamSocket
    var out = StreamBuffer(limit: 1 << 24)
    var registration: Registration?
    let loop: EventLoop
    let waited: Counters
    private let scratch = Scratch(65_536)
    private var peerIsDone = false

    init(_ socket: consuming StreamSocket, _ loop: EventLoop, _ waited: Counters) throws {
        self.socket = socket
        self.loop = loop
        self.waited = waited
        registration = try loop.register(self.socket.descriptor, .readable, self)
    }

    func ready(_ readiness: Readiness) {
        do {
            if readiness.contains(.readable) {
                switch try socket.receive(into: scratch) {
                case .bytes(let count):
                    let isKept = out.append(scratch.first(count).span)
                    #expect(isKept)
                case .wouldBlock: break
                case .endOfStream: peerIsDone = true
                }
            }
            guard try out.flush(to: socket) else {
                waited.add(0)
                return loop.update(registration!, peerIsDone ? .writable : [.readable, .writable])
            }
            loop.update(registration!, .readable)
            if peerIsDone { close() }
        } catch {
            Issue.record("\(error)")
            close()
        }
    }

    private func close() {
        loop.unregister(registration!)
        socket.close()
    }
}

@Suite struct StreamTests {
    @Test func partialWritesGoOnInOrder() throws {
        let loop = try EventLoop(label: "test loop")
        let waited = Counters(1)
        let listener = try StreamListener.listen(Endpoint(loopback, port: 0))
        nonisolated(unsafe) var connections: [EchoConnection] = []
        let peers = Journal<SocketAddress>()
        try listener.start(
            in: loop, failed: { Issue.record("\($0)") },
            accepted: { socket, peer in
                peers.append(peer)
                connections.append(try! EchoConnection(socket, loop, waited))
            })
        loop.start()

        // A plain blocking client that writes everything before it reads anything: the echo must keep what the
        // connection does not take.
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(client) }
        #expect(withAddress(listener.local) { connect(client, $0, $1) } == 0)
        let part = (0..<65_537).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 11) }
        let message = Array(repeatElement(part, count: 183).joined())
        var written = 0
        while written < message.count {
            let count = message.withUnsafeBytes {
                send(client, $0.baseAddress! + written, message.count - written, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { break }
            written += count
        }
        #expect(written == message.count)
        shutdown(client, Int32(SHUT_WR))
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 100_000)
        while case let count = read(client, &buffer, buffer.count), count > 0 { received += buffer[..<count] }
        #expect(received == message)
        #expect(waited.all[0] > 0)
        #expect(peers.all.map(\.address) == [loopback])
        try loop.inTurn { _ in
            listener.stop()
            connections = []
        }
        loop.end()
    }

    @Test func aStreamBufferHoldsToItsLimitAndItsOrder() throws {
        let listener = try StreamListener.listen(Endpoint(loopback, port: 0))
        let socket = try StreamSocket.connect(to: listener.local)
        let server = try #require(accept(listener))
        var buffer = StreamBuffer(limit: 10)
        let fits = buffer.append(bytes("0123456789").span)
        let more = buffer.append(bytes("x").span)
        let nothing = buffer.append([UInt8]().span)
        #expect(fits && !more && nothing)
        #expect(try buffer.flush(to: socket))
        let again = buffer.append(bytes("abcdefghij").span)
        #expect(again && buffer.count == 10)
        #expect(try buffer.flush(to: socket))
        #expect(buffer.count == 0)
        var received = [UInt8](repeating: 0, count: 64)
        #expect(read(server, &received, 64) == 20)
        #expect(Array(received[..<20]) == bytes("0123456789abcdefghij"))
        close(server)
    }

    @Test func writingToAPeerThatIsGoneIsAnErrorNotTheEnd() throws {
        let listener = try StreamListener.listen(Endpoint(loopback, port: 0))
        let socket = try StreamSocket.connect(to: listener.local)
        let server = try #require(accept(listener))
        // Closing with time 0 sends RST.
        var linger = Glibc.linger(l_onoff: 1, l_linger: 0)
        setsockopt(server, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
        close(server)
        var buffer = StreamBuffer(limit: 10)
        _ = buffer.append([1].span)
        var codes: [Int32] = []
        for _ in 0..<2 {
            do throws(SystemError) { _ = try buffer.flush(to: socket) } catch { codes.append(error.code) }
        }
        #expect(codes == [ECONNRESET, EPIPE])
    }

    @Test func aRefusedConnectionIsToldWhenWritable() throws {
        let endpoint = try StreamListener.listen(Endpoint(loopback, port: 0)).local
        let loop = try EventLoop(label: "test loop")
        let socket = try StreamSocket.connect(to: endpoint)
        let results = Journal<SystemError?>()
        let gate = Gate()
        final class Connecting: EventHandler, @unchecked Sendable {
            let socket: StreamSocket
            var registration: Registration?
            var done: (SystemError?) -> Void = { _ in }
            init(_ socket: consuming StreamSocket) { self.socket = socket }
            func ready(_ readiness: Readiness) {
                do throws(SystemError) {
                    try socket.connectResult()
                    done(nil)
                } catch { done(error) }
            }
        }
        let connecting = Connecting(socket)
        connecting.registration = try loop.register(connecting.socket.descriptor, .writable, connecting)
        connecting.done = {
            results.append($0)
            loop.unregister(connecting.registration!)
            connecting.done = { _ in }
            gate.open()
        }
        loop.start()
        #expect(gate.wait())
        #expect(results.all.count == 1)
        #expect(results.all[0]?.code == ECONNREFUSED)
        loop.end()
    }

    @Test func halfClosedStillReceives() throws {
        let listener = try StreamListener.listen(Endpoint(loopback, port: 0))
        let socket = try StreamSocket.connect(to: listener.local)
        try socket.connectResult()
        let server = try #require(accept(listener))
        socket.shutdownSending()
        var byte: UInt8 = 0
        #expect(read(server, &byte, 1) == 0)
        let scratch = Scratch(8)
        #expect(try socket.receive(into: scratch) == .wouldBlock)
        #expect(write(server, [1, 2, 3], 3) == 3)
        #expect(try socket.receive(into: scratch) == .bytes(3))
        close(server)
        #expect(try socket.receive(into: scratch) == .endOfStream)
    }

    @Test func aSecondListenFails() throws {
        let listener = try StreamListener.listen(Endpoint(loopback, port: 0))
        #expect(throws: SystemError.self) { _ = try StreamListener.listen(listener.local) }
    }

    /// In a process of its own, for it uses up all descriptors.
    @Test func withoutDescriptorsClientsAreTurnedAwayAndLaterServed() async {
        await #expect(processExitsWith: .success) {
            let loop = try EventLoop(label: "starved")
            let listener = try StreamListener.listen(Endpoint(loopback, port: 0))
            let failures = Journal<SystemError>()
            let accepted = Gate()
            try listener.start(
                in: loop,
                failed: {
                    failures.append($0)
                    guard failures.all.count == 3 else { return }
                    // As if another thread took the descriptor of the reserve.
                    var none = rlimit(rlim_cur: 3, rlim_max: 200)
                    setrlimit(__rlimit_resource_t(7), &none)
                }, accepted: { _, _ in accepted.open() })
            loop.start()
            let clients = (0..<6).map { _ in socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) }
            func ask(_ client: Int32) -> Bool { withAddress(listener.local) { connect(client, $0, $1) } == 0 }
            // Once served, so that Dispatch has all the descriptors that it needs.
            guard ask(clients[0]), accepted.wait() else { exit(1) }
            var limit = rlimit(rlim_cur: 200, rlim_max: 200)
            guard setrlimit(__rlimit_resource_t(7), &limit) == 0 else { exit(2) }
            var fillers: [Int32] = []
            func fill() {
                while case let filler = open("/dev/null", O_RDONLY), filler >= 0 { fillers.append(filler) }
            }
            /// The end of the stream or a reset, not silence.
            func isTurnedAway(_ client: Int32) -> Bool {
                var wait = pollfd(fd: client, events: Int16(POLLIN), revents: 0)
                var byte: UInt8 = 0
                return poll(&wait, 1, 10_000) == 1 && read(client, &byte, 1) <= 0
            }
            fill()
            for client in clients[1...3] {
                guard ask(client) else { exit(3) }
                guard isTurnedAway(client) else { exit(4) }
            }
            try loop.inTurn { _ in }
            guard failures.all.count >= 3, failures.all.allSatisfy({ $0.code == EMFILE }) else { exit(5) }
            guard setrlimit(__rlimit_resource_t(7), &limit) == 0 else { exit(6) }
            for filler in fillers { close(filler) }
            guard ask(clients[4]), accepted.wait() else { exit(7) }
            // The next shortage finds a reserve again.
            try loop.inTurn { _ in }
            fill()
            guard ask(clients[5]), isTurnedAway(clients[5]) else { exit(8) }
            exit(0)
        }
    }

    /// In a process of its own, for it uses up all descriptors.
    @Test func withoutDescriptorsClientsOfAUnixSocketAreServed() async {
        await #expect(processExitsWith: .success) {
            let loop = try EventLoop(label: "starved")
            let folder = "/tmp/httpdnsd-starved-\(getpid())"
            let listener = try UnixListener.listen(folder + "/socket")
            let failures = Journal<SystemError>()
            let accepted = Journal<Int32>()
            try listener.start(
                in: loop, failed: { failures.append($0) },
                accepted: { socket in
                    var socket = socket
                    accepted.append(socket.descriptor.raw)
                    socket.close()
                    listener.connectionEnded()
                })
            loop.start()
            func ask() -> Bool {
                guard let client = try? StreamSocket.connect(toPath: listener.path) else { return false }
                var wait = pollfd(fd: client.descriptor.raw, events: Int16(POLLIN), revents: 0)
                return poll(&wait, 1, 10_000) == 1
            }
            guard ask() else { exit(1) }
            var limit = rlimit(rlim_cur: 200, rlim_max: 200)
            guard setrlimit(__rlimit_resource_t(7), &limit) == 0 else { exit(2) }
            var fillers: [Int32] = []
            while case let filler = open("/dev/null", O_RDONLY), filler >= 0 { fillers.append(filler) }
            for number in 2...9 {
                // The client's own.
                close(fillers.removeLast())
                guard ask(), accepted.all.count == number else { exit(3) }
                fillers.append(open("/dev/null", O_RDONLY))
            }
            guard failures.all.isEmpty else { exit(4) }
            unlink(folder + "/socket")
            rmdir(folder)
            exit(0)
        }
    }

    /// Accepts with plain system calls.
    private func accept(_ listener: StreamListener) -> Int32? {
        let raw = listener.descriptor.raw
        var wait = pollfd(fd: raw, events: Int16(POLLIN), revents: 0)
        guard poll(&wait, 1, 10_000) == 1 else { return nil }
        return Glibc.accept(raw, nil, nil)
    }
}
