import Base
import Foundation
import Synchronization
import Testing

@testable import Transport

@Suite struct DatagramTests {
    @Test func tenThousandDatagramsThroughTwoSocketsAreAllAnswered() throws {
        let server = try EchoServer(Endpoint(loopback, port: 0), count: 2)
        defer { server.stop() }
        // 50 source ports, so that the kernel spreads them over both sockets; 4 in flight each.
        let clients = (0..<50).map { _ in PlainClient() }
        var answered = Set<Int>()
        for round in 0..<50 {
            for (index, client) in clients.enumerated() {
                for number in 0..<4 {
                    client.send(bytes("\(round * 200 + index * 4 + number)"), to: server.endpoint)
                }
            }
            for client in clients {
                for _ in 0..<4 {
                    let reply = try #require(client.receive())
                    answered.insert(try #require(Int(String(decoding: reply.bytes, as: UTF8.self))))
                }
            }
        }
        #expect(answered == Set(0..<10_000))
        #expect(server.seen.all.reduce(0, +) == 10_000)
        #expect(server.seen.all.allSatisfy { $0 > 1000 })
    }

    @Test(arguments: ["127.0.0.2", "127.3.2.1"])
    func aWildcardSocketRepliesFromTheAddressAsked(address: String) throws {
        let server = try EchoServer(Endpoint(IPAddress(v4: 0), port: 0))
        defer { server.stop() }
        let client = PlainClient()
        client.send(bytes("who"), to: Endpoint(IPAddress(address)!, port: server.endpoint.port))
        let reply = try #require(client.receive())
        #expect(reply.bytes == bytes("who"))
        #expect(reply.from == "\(address) \(server.endpoint.port)")
    }

    @Test func anIPv6WildcardSocketRepliesFromTheAddressAskedAndLeavesIPv4Alone() throws {
        let server = try EchoServer(Endpoint(IPAddress(v6: 0, 0), port: 0))
        defer { server.stop() }
        let client = PlainClient(AF_INET6)
        client.send(bytes("six"), to: Endpoint(IPAddress("::1")!, port: server.endpoint.port))
        #expect(try #require(client.receive()).from == "::1 \(server.endpoint.port)")
        // IPV6_V6ONLY: the same port is free for IPv4.
        _ = try DatagramSocket.bind(Endpoint(IPAddress(v4: 0), port: server.endpoint.port), count: 1)
    }

    @Test func aReplyLeavesALinkLocalAddressByItsInterface() throws {
        let slots = MessageSlots(count: 1, size: 8)
        let cases: [(source: String, scope: UInt32, interface: UInt32)] = [
            ("fe80::1", 0, 7), ("fe80::1", 7, 0), ("2001:db8::1", 0, 0), ("192.0.2.1", 0, 0),
        ]
        for (source, scope, interface) in cases {
            let address = try #require(IPAddress(source))
            var peer = SocketAddress(Endpoint(try #require(IPAddress("2001:db8::2")), port: 53))
            peer.scope = scope
            slots.prepareToSend(0, at: 0, length: 1, to: peer, from: LocalAddress(address, interface: 7))
            let local = slots.local(0)
            #expect(local == LocalAddress(address, interface: interface))
        }
    }

    @Test func aBatchTellsTheLocalAddressOnlyOnAWildcardSocket() throws {
        let client = PlainClient()
        // One batch for all: what one socket leaves behind must not show at the next.
        var batch = ReceiveBatch(slots: 1)
        for (address, local) in [(loopback, nil), (IPAddress(v4: 0), loopback as IPAddress?), (loopback, nil)] {
            let socket = try DatagramSocket.bind(Endpoint(address, port: 0), count: 1)[0]
            #expect(socket.isWildcard == (local != nil))
            client.send([1], to: Endpoint(loopback, port: socket.local.port))
            #expect(try batch.receive(from: socket, waiting: false) == 1)
            #expect(batch.local(0)?.address == local)
            #expect(batch.sender(0).address == loopback)
        }
    }

    @Test func aSecondBindToTheAddressFails() throws {
        let first = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 2)
        let endpoint = first[0].local
        #expect(first.map(\.local) == [endpoint, endpoint])
        #expect(throws: SystemError("bind", "127.0.0.1:\(endpoint.port)", code: EADDRINUSE)) {
            _ = try DatagramSocket.bind(endpoint, count: 2)
        }
        #expect(throws: SystemError.self) { _ = try DatagramSocket.bind(endpoint, count: 1) }
        #expect(
            SystemError("bind", endpoint.description, code: EADDRINUSE).description
                == "bind 127.0.0.1:\(endpoint.port): Address already in use")
    }

    @Test func theAddressIsFreeAgainWhenTheSocketsAreGone() throws {
        let endpoint = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 2)[0].local
        _ = try DatagramSocket.bind(endpoint, count: 2)
    }

    @Test func aZeroLengthDatagramIsADatagram() throws {
        let server = try EchoServer(Endpoint(loopback, port: 0))
        defer { server.stop() }
        let client = PlainClient()
        // The first wakes an idle reader, the second one that lingers.
        for _ in 0..<2 {
            client.send([], to: server.endpoint)
            #expect(try #require(client.receive()).bytes == [])
        }
        client.send([7], to: server.endpoint)
        #expect(try #require(client.receive()).bytes == [7])
    }

    @Test func aDatagramLongerThanASlotIsCut() throws {
        let socket = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        let client = PlainClient()
        for size in [ReceiveBatch.slotSize, ReceiveBatch.slotSize + 1, 9000, 1] {
            client.send([UInt8](repeating: 5, count: size), to: socket.local)
        }
        var batch = ReceiveBatch(slots: 8)
        #expect(try batch.receive(from: socket, waiting: false) == 4)
        #expect((0..<4).map { batch.bytes($0).count } == [1232, 1232, 1232, 1])
        #expect(try batch.receive(from: socket, waiting: false) == 0)
    }

    @Test func aBatchTakesNoMoreThanItsSlotsAndLosesNothing() throws {
        let socket = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        let client = PlainClient()
        for number in 0..<10 { client.send([UInt8](repeating: 9, count: number), to: socket.local) }
        var batch = ReceiveBatch(slots: 4)
        var sizes: [Int] = []
        while try batch.receive(from: socket, waiting: false) > 0 {
            #expect(batch.count <= 4)
            for slot in 0..<batch.count { sizes.append(batch.bytes(slot).count) }
        }
        #expect(sizes == Array(0..<10))
    }

    @Test func aReplyThatCannotBeSentIsDroppedAndTheOthersGo() throws {
        let socket = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        let client = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        var replies = SendBatch(slots: 6)
        let there = SocketAddress(client.local)
        // Port 0 and an IPv6 peer cannot be sent to from this socket.
        let nowhere = SocketAddress(Endpoint(loopback, port: 0))
        let other = SocketAddress(Endpoint(IPAddress("::1")!, port: 5))
        for (number, peer) in [nowhere, there, other, other, there, nowhere].enumerated() {
            replies.next()[0] = UInt8(number)
            replies.commit(1, to: peer, from: nil)
        }
        let isFull = replies.isFull
        #expect(isFull)
        replies.flush(socket)
        #expect(replies.count == 0)
        var batch = ReceiveBatch(slots: 8)
        #expect(try batch.receive(from: client, waiting: false) == 2)
        #expect((0..<2).map { Array(batch.bytes($0)) } == [[1], [4]])
    }

    @Test func repliesOfAllLengthsKeepApart() throws {
        let socket = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        let client = PlainClient()
        client.send([1], to: socket.local)
        var batch = ReceiveBatch(slots: 1)
        #expect(try batch.receive(from: socket, waiting: false) == 1)
        var replies = SendBatch(slots: 8)
        let longest = SendBatch.slotSize
        // The second time there is no octet left.
        for lengths in [[0, 1, 63, 64, 65, 100, 512, longest], Array(repeating: longest, count: 8)] {
            for (number, length) in lengths.enumerated() {
                let room = replies.next()
                #expect(room.count == longest)
                _ = room.update(fromContentsOf: [UInt8](repeating: UInt8(number), count: length))
                replies.commit(length, to: batch.sender(0), from: nil)
            }
            replies.flush(socket)
            for (number, length) in lengths.enumerated() {
                #expect(try #require(client.receive()).bytes == [UInt8](repeating: UInt8(number), count: length))
            }
        }
    }

    @Test func aSlotThatHadASourceAddressSendsWithoutOneLater() throws {
        let socket = try DatagramSocket.bind(Endpoint(IPAddress(v4: 0), port: 0), count: 1)[0]
        let client = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        var replies = SendBatch(slots: 1)
        var batch = ReceiveBatch(slots: 1)
        let there = LocalAddress(.v4(127, 0, 0, 9))
        for (source, expected) in [(there as LocalAddress?, "127.0.0.9"), (nil, "127.0.0.1")] {
            replies.next()[0] = 1
            replies.commit(1, to: SocketAddress(client.local), from: source)
            replies.flush(socket)
            #expect(try batch.receive(from: client, waiting: false) == 1)
            #expect(batch.sender(0).address.description == expected)
        }
    }

    /// To everybody else its port is as good as closed.
    @Test func aQuerySocketHearsItsResolverAlone() throws {
        let resolver = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        let query = try QuerySocket.open(to: resolver.local)
        try query.send(bytes("ask"))
        var batch = ReceiveBatch(slots: 2)
        #expect(try batch.receive(from: resolver, waiting: false) == 1)
        let asker = batch.sender(0)
        let stranger = try QuerySocket.open(to: asker.endpoint)
        try stranger.send(bytes("forged"))
        let errors = stranger.receive(into: &batch)
        #expect(errors.map(\.isRefusal) == [true] && batch.count == 0)
        #expect(query.receive(into: &batch).isEmpty && batch.count == 0)
        var replies = SendBatch(slots: 2)
        replies.commit(0, to: asker, from: nil)
        _ = replies.next().update(fromContentsOf: bytes("answer"))
        replies.commit(6, to: asker, from: nil)
        replies.flush(resolver)
        #expect(query.receive(into: &batch).isEmpty && batch.count == 2)
        #expect(Array(batch.bytes(0)).isEmpty && Array(batch.bytes(1)) == bytes("answer"))
    }

    @Test func aQuerySocketLeavesAsItIsSaid() throws {
        var egress = Egress()
        #expect(throws: Never.self) { try egress.check() }
        egress.source = .v4(127, 7, 7, 7)
        let resolver = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        for device in ["", "lo"] {
            egress.device = device
            let query = try QuerySocket.open(to: resolver.local, by: egress)
            try query.send(bytes("ask"))
            var batch = ReceiveBatch(slots: 2)
            #expect(try batch.receive(from: resolver, waiting: false) == 1)
            #expect(batch.sender(0).address == egress.source)
        }
        let stream = try StreamListener.listen(Endpoint(loopback, port: 0))
        #expect(throws: Never.self) { _ = try StreamSocket.connect(to: stream.local, by: egress) }
    }

    @Test(
        "a socket that cannot leave as it is said does not leave",
        arguments: [
            ("192.0.2.77", "", "bind 192.0.2.77: Cannot assign requested address"),
            ("::1", "", "bind ::1: Address family not supported by protocol"),
            ("", "none77", "setsockopt SO_BINDTODEVICE none77: No such device"),
        ])
    func barred(_ source: String, _ device: String, _ expected: String) throws {
        var egress = Egress()
        (egress.source, egress.device) = (IPAddress(source), device)
        let error = #expect(throws: SystemError.self) {
            _ = try QuerySocket.open(to: Endpoint(loopback, port: 53), by: egress)
        }
        #expect(error?.description == expected)
    }

    @Test func aQueryToNobodyIsRefused() throws {
        let endpoint = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0].local
        let query = try QuerySocket.open(to: endpoint)
        try query.send([1])
        var batch = ReceiveBatch(slots: 2)
        let errors = query.receive(into: &batch)
        #expect(errors == [QuerySocket.ReportedError(isRefusal: true, id: nil)] && batch.count == 0)
    }

    /// It says which datagram was refused, fails none that is sent after it, and is said once.
    @Test func aRefusalQuotesTheQuery() throws {
        let endpoint = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0].local
        let query = try QuerySocket.open(to: endpoint)
        try query.send([0x12, 0x34, 1])
        let resolver = try DatagramSocket.bind(endpoint, count: 1)[0]
        var queries = SendBatch(slots: 2)
        for id in [UInt8(1), 2] {
            _ = queries.next().update(fromContentsOf: [id, id])
            queries.commit(2)
        }
        try query.send(&queries) { _ in Issue.record("the kernel takes both") }
        var batch = ReceiveBatch(slots: 4)
        #expect(try batch.receive(from: resolver, waiting: false) == 2)
        let errors = query.receive(into: &batch)
        #expect(errors == [QuerySocket.ReportedError(isRefusal: true, id: 0x1234)])
        let later = query.receive(into: &batch)
        #expect(later.isEmpty && batch.count == 0)
    }

    /// What the kernel says to the 21st of 40 datagrams, and what becomes of it; an error of ICMP about an earlier one is asked away.
    @Test(
        arguments: [
            (ENOBUFS, [20], nil), (ENOMEM, [20], nil), (EPERM, [20], nil), (EAGAIN, [20], nil), (ECONNREFUSED, [], nil),
            (ENETUNREACH, Array(20..<40), ENETUNREACH),
        ] as [(Int32, [Int], Int32?)])
    func aDatagramThatTheKernelDoesNotTakeIsLostAlone(code: Int32, lost: [Int], failure: Int32?) {
        var batch = SendBatch(slots: 64)
        for id in 0..<40 as Range<UInt8> {
            _ = batch.next().update(fromContentsOf: [id, id])
            batch.commit(2)
        }
        var dropped: [Int] = []
        // Of another error than a loss, all that follow have their share.
        var hasFailed = false
        func isDropped(_ index: Int) { dropped.append(index) }
        let said = batch.flush(isConnected: true, isDropped: isDropped) { _, range in
            if range.lowerBound < 20 { return min(range.upperBound, 20) - range.lowerBound }
            if range.lowerBound == 20, code != ECONNREFUSED || !hasFailed {
                hasFailed = true
                errno = code
                return -1
            }
            if code == ENETUNREACH {
                errno = code
                return -1
            }
            return range.count
        }
        #expect(dropped == lost && said == failure)
        #expect(batch.count == 0)
    }

    @Test func querySocketsHavePortsOfTheirOwn() throws {
        let resolver = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        var batch = ReceiveBatch()
        var ports = Set<UInt16>()
        for _ in 0..<32 {
            let query = try QuerySocket.open(to: resolver.local)
            try query.send([1])
            #expect(try batch.receive(from: resolver, waiting: false) == 1)
            ports.insert(batch.sender(0).port)
        }
        // 32 of some 28,000: equal ones are rare, consecutive ones rarer.
        #expect(ports.count > 28)
        let sorted = ports.sorted()
        #expect(zip(sorted, sorted.dropFirst()).filter { $1 - $0 == 1 }.count < 4)
    }
}

extension QuerySocket {
    /// Sends one datagram.
    fileprivate func send(_ octets: [UInt8]) throws(SystemError) {
        var batch = SendBatch(slots: 1)
        _ = batch.next().update(fromContentsOf: octets)
        batch.commit(octets.count)
        try send(&batch) { _ in Issue.record("the kernel takes it") }
    }
}
