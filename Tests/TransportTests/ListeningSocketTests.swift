import Base
import Foundation
import Testing

@testable import Transport

@Suite struct ListeningSocketTests {
    private func plain(_ family: Int32, _ type: __socket_type, bound: Endpoint? = nil) -> Int32 {
        let raw = socket(family, Int32(type.rawValue), 0)
        if let bound { precondition(withAddress(bound) { bind(raw, $0, $1) } == 0) }
        return raw
    }

    private func refusal(_ raw: Int32) -> Int32? {
        do throws(SystemError) {
            _ = try ListeningSocket.adopt(Descriptor(adopting: raw))
            return nil
        } catch {
            #expect(fcntl(raw, F_GETFD) == -1, "closed")
            return error.code
        }
    }

    @Test func aBoundDatagramSocketIsTakenOverAndAnswers() throws {
        let raw = plain(AF_INET, SOCK_DGRAM, bound: Endpoint(IPAddress(v4: 0), port: 0))
        guard case .datagram(let socket) = try ListeningSocket.adopt(Descriptor(adopting: raw)) else {
            Issue.record("not a datagram socket")
            return
        }
        #expect(socket.isWildcard && socket.local.port != 0)
        #expect(fcntl(raw, F_GETFD) == FD_CLOEXEC)
        let reader = LingeringReader(socket, label: "adopted") { batch, replies in
            for slot in 0..<batch.count {
                replies.commit(3, to: batch.sender(slot), from: batch.local(slot))
            }
        }
        try reader.start()
        let client = PlainClient()
        client.send([1], to: Endpoint(.v4(127, 0, 0, 5), port: socket.local.port))
        #expect(try #require(client.receive()).from == "127.0.0.5 \(socket.local.port)")
        let gate = Gate()
        reader.stop { gate.open() }
        #expect(gate.wait())
    }

    @Test func aDualStackSocketIsOneOfIPv4TooAndAnswersFromTheAddressAsked() throws {
        // systemd's default for ListenDatagram=PORT is one IPv6 socket for both families.
        let raw = plain(AF_INET6, SOCK_DGRAM, bound: Endpoint(IPAddress(v6: 0, 0), port: 0))
        guard case .datagram(let socket) = try ListeningSocket.adopt(Descriptor(adopting: raw)) else {
            Issue.record("not a datagram socket")
            return
        }
        let port = socket.local.port
        #expect(socket.endpoints.map(\.description) == ["[::]:\(port)", "0.0.0.0:\(port)"])
        // Path MTU messages are ignored for the clients of both.
        let ofIPv4 = try socket.descriptor.option(Int32(IPPROTO_IP), IP_MTU_DISCOVER)
        let ofIPv6 = try socket.descriptor.option(Int32(IPPROTO_IPV6), IPV6_MTU_DISCOVER)
        #expect(ofIPv4 == IP_PMTUDISC_OMIT && ofIPv6 == IPV6_PMTUDISC_OMIT)
        let client = PlainClient()
        client.send([1], to: Endpoint(.v4(127, 0, 0, 5), port: port))
        var batch = ReceiveBatch(slots: 1)
        #expect(try batch.receive(from: socket, waiting: false) == 1)
        #expect(batch.sender(0).address == loopback)
        #expect(batch.local(0)?.address.description == "::ffff:127.0.0.5")
        var replies = SendBatch(slots: 1)
        replies.commit(2, to: batch.sender(0), from: batch.local(0))
        #expect(replies.receiver(0).address == loopback)
        replies.flush(socket)
        #expect(try #require(client.receive()).from == "127.0.0.5 \(port)")
    }

    @Test func aDualStackListenerShowsTheIPv4AddressesOfItsClients() throws {
        let raw = plain(AF_INET6, SOCK_STREAM, bound: Endpoint(IPAddress(v6: 0, 0), port: 0))
        #expect(listen(raw, 5) == 0)
        guard case .stream(let listener) = try ListeningSocket.adopt(Descriptor(adopting: raw)) else {
            Issue.record("not a stream socket")
            return
        }
        let port = listener.local.port
        #expect(listener.endpoints.map(\.description) == ["[::]:\(port)", "0.0.0.0:\(port)"])
        let loop = try EventLoop(label: "test loop")
        let clients = Journal<IPAddress>()
        let gate = Gate()
        try listener.start(
            in: loop, failed: { _ in },
            accepted: { _, client in
                clients.append(client.address)
                gate.open()
            })
        loop.start()
        let socket = try StreamSocket.connect(to: Endpoint(loopback, port: port))
        #expect(gate.wait())
        #expect(clients.all == [loopback])
        withExtendedLifetime(socket.descriptor.raw) {}
        loop.end()
    }

    @Test func aSocketOfIPv6AloneIsNoneOfIPv4() throws {
        let raw = plain(AF_INET6, SOCK_DGRAM)
        var isAlone: Int32 = 1
        let length = socklen_t(MemoryLayout<Int32>.size)
        #expect(setsockopt(raw, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &isAlone, length) == 0)
        #expect(withAddress(Endpoint(IPAddress(v6: 0, 0), port: 0)) { bind(raw, $0, $1) } == 0)
        guard case .datagram(let socket) = try ListeningSocket.adopt(Descriptor(adopting: raw)) else {
            Issue.record("not a datagram socket")
            return
        }
        #expect(socket.endpoints == [socket.local])
    }

    @Test func aListeningStreamSocketIsTakenOver() throws {
        let raw = plain(AF_INET, SOCK_STREAM, bound: Endpoint(loopback, port: 0))
        #expect(listen(raw, 5) == 0)
        guard case .stream(let listener) = try ListeningSocket.adopt(Descriptor(adopting: raw)) else {
            Issue.record("not a stream socket")
            return
        }
        #expect(listener.local.address == loopback)
        let loop = try EventLoop(label: "test loop")
        let gate = Gate()
        try listener.start(in: loop, failed: { _ in }, accepted: { _, _ in gate.open() })
        loop.start()
        let socket = try StreamSocket.connect(to: listener.local)
        #expect(gate.wait())
        withExtendedLifetime(socket.descriptor.raw) {}
        loop.end()
    }

    @Test func whatCannotBeListenedOnIsRefused() throws {
        var pipes: [Int32] = [0, 0]
        #expect(pipe(&pipes) == 0)
        close(pipes[1])
        #expect(refusal(pipes[0]) == ENOTSOCK)
        #expect(refusal(plain(AF_UNIX, SOCK_STREAM)) == EAFNOSUPPORT)
        #expect(refusal(plain(AF_INET, SOCK_DGRAM)) == EDESTADDRREQ)
        #expect(refusal(plain(AF_INET, SOCK_STREAM, bound: Endpoint(loopback, port: 0))) == EINVAL)
        #expect(refusal(-1) == EBADF)
    }
}
