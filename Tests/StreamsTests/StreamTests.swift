import Base
import Cryptography
import ShellTestSupport
import Testing
import Transport

@testable import Streams

/// Two streams of one loop, one dialled and one accepted, and what their owners are told.
@Suite struct StreamTests {
    private static let loopback = IPAddress.v4(127, 0, 0, 1)

    /// What an owner was told.
    private enum Told: Equatable, Sendable {
        case connected, secured, finished
        case received([UInt8])
        case ended(isCut: Bool)
        case failed(LinkEnd)
    }

    /// An owner that notes everything; closes at the end, unless it is to go on.
    private final class Owner: StreamOwner, @unchecked Sendable {
        let told = Arrivals<Told>()
        /// On the loop alone.
        var stream: Stream?
        var finishesOnFailure = false

        func connected(_ stream: Stream) { told.append(.connected) }
        func secured(_ stream: Stream) { told.append(.secured) }
        func received(_ bytes: Span<UInt8>, on stream: Stream) {
            told.append(.received(bytes.indices.map { bytes[$0] }))
        }
        func finished(_ stream: Stream) { told.append(.finished) }
        func ended(_ stream: Stream, isCut: Bool) {
            told.append(.ended(isCut: isCut))
            stream.close()
        }
        func failed(_ stream: Stream, _ failure: LinkEnd) {
            told.append(.failed(failure))
            if finishesOnFailure { stream.finish() } else { stream.close() }
        }
    }

    /// A dialled stream and the one that was accepted for it.
    private final class Pair: @unchecked Sendable {
        let loop: EventLoop
        let (client, server) = (Owner(), Owner())
        let endpoint: Endpoint
        private let listener: StreamListener
        private let scratch = Scratch(4096)
        private let context: TLSClientContext?

        init(isSecure: Bool, clientTrusts: Bool = true, limit: Int = 100_000) throws {
            loop = try EventLoop(label: "test")
            let made =
                try isSecure ? SelfSignedCertificate.make(names: [], addresses: [loopback], days: 1) : nil
            let other = try SelfSignedCertificate.make(names: [], addresses: [loopback], days: 1)
            let acceptor = try made.map {
                try TLSServerContext(certificatePEM: $0.certificatePEM, keyPEM: $0.keyPEM)
            }
            context = try made.map {
                try TLSClientContext(TLSPolicy(anchors: clientTrusts ? $0.certificatePEM : other.certificatePEM))
            }
            listener = try StreamListener.listen(Endpoint(loopback, port: 0))
            endpoint = listener.local
            let (loop, server, shared) = (loop, server, scratch)
            try listener.start(
                in: loop, failed: { _ in },
                accepted: { socket, _ in
                    server.stream = try? Stream(
                        socket, isConnected: true, tls: acceptor?.session(), limit: limit, scratch: shared, loop: loop,
                        owner: server)
                })
            loop.start()
            onLoop { [self] in
                client.stream = try? Stream(
                    to: endpoint, tls: context?.session(to: endpoint, at: WallClock.unixSeconds()), limit: limit,
                    scratch: self.scratch, loop: self.loop, owner: client)
            }
        }

        func onLoop(_ work: @escaping @Sendable () -> Void) {
            let done = Gate()
            loop.submit {
                work()
                done.open()
            }
            #expect(done.wait())
        }

        func send(_ bytes: [UInt8], from owner: Owner) { onLoop { owner.stream?.send(bytes.span) } }

        func end() {
            onLoop { [self] in
                for owner in [client, server] {
                    owner.stream?.close()
                    owner.stream = nil
                }
                listener.stop()
            }
            let gate = Gate()
            loop.stop { gate.open() }
            #expect(gate.wait())
        }
    }

    @Test(arguments: [false, true]) func octetsGoBothWays(isSecure: Bool) throws {
        let pair = try Pair(isSecure: isSecure)
        pair.send([1, 2, 3], from: pair.client)
        #expect(pair.client.told.next() == .connected)
        if isSecure {
            #expect(pair.client.told.next() == .secured)
            #expect(pair.server.told.next() == .secured)
        }
        #expect(pair.server.told.next() == .received([1, 2, 3]))
        pair.send([4], from: pair.server)
        #expect(pair.client.told.next() == .received([4]))
        #expect(pair.client.told.isEmpty && pair.server.told.isEmpty)
        pair.end()
    }

    /// A whole close says goodbye in TLS; what ends otherwise may have been cut by anybody.
    @Test(arguments: [false, true]) func theEnd(isSecure: Bool) throws {
        let pair = try Pair(isSecure: isSecure)
        pair.send([1], from: pair.client)
        while let told = pair.server.told.next(), told != .received([1]) {}
        pair.onLoop { pair.server.stream?.close() }
        while let told = pair.client.told.next() {
            if case .ended(let isCut) = told {
                #expect(!isCut)
                break
            }
        }
        // Nothing is told of a stream that was closed, and nothing sent on it.
        pair.send([2], from: pair.server)
        #expect(pair.server.told.isEmpty)
        pair.end()
    }

    @Test(arguments: [false, true]) func whatWasSentBeforeTheFinishArrives(isSecure: Bool) throws {
        let pair = try Pair(isSecure: isSecure)
        let last = [UInt8](repeating: 7, count: 50_000)
        pair.send([1], from: pair.client)
        while let told = pair.server.told.next(), told != .received([1]) {}
        pair.onLoop {
            pair.server.stream?.send(last.span)
            pair.server.stream?.finish()
            // What still comes is thrown away.
            pair.client.stream?.send([9].span)
        }
        var received: [UInt8] = []
        while let told = pair.client.told.next() {
            if case .received(let bytes) = told { received += bytes }
            if case .ended = told { break }
        }
        #expect(received == last)
        #expect(pair.server.told.next() == .finished)
        guard case .ended = pair.server.told.next() else { return #expect(Bool(false)) }
        pair.end()
    }

    /// The server learns from the alert why, although it was told by a side that closed.
    @Test func aCertificateThatIsRefused() throws {
        let pair = try Pair(isSecure: true, clientTrusts: false)
        pair.onLoop { pair.server.finishesOnFailure = true }
        #expect(pair.client.told.next() == .connected)
        #expect(pair.client.told.next() == .failed(.tls(.selfSigned)))
        guard case .failed(.tls(.alert)) = pair.server.told.next() else { return #expect(Bool(false)) }
        pair.end()
    }

    @Test func whoDoesNotReadIsGivenUp() throws {
        let pair = try Pair(isSecure: false, limit: 1000)
        pair.send([1], from: pair.client)
        #expect(pair.server.told.next() == .received([1]))
        pair.onLoop {
            pair.client.stream?.isReading = false
            let piece = [UInt8](repeating: 0, count: 900)
            for _ in 0..<100_000 where !(pair.server.stream?.isClosed ?? true) {
                pair.server.stream?.send(piece.span)
            }
        }
        #expect(pair.server.told.next() == .failed(.tooSlow))
        pair.end()
    }

    /// What is sent at once may be more than may wait, as long as the socket takes the rest: with TLS as without it.
    @Test(arguments: [false, true]) func aBurstIsWrittenBeforeItIsLimited(isSecure: Bool) throws {
        let pair = try Pair(isSecure: isSecure, limit: 128 * 1024)
        #expect(pair.client.told.next() == .connected)
        if isSecure { for owner in [pair.client, pair.server] { #expect(owner.told.next() == .secured) } }
        pair.send([UInt8](repeating: 7, count: 160_000), from: pair.client)
        var count = 0
        while count < 160_000, case .received(let bytes) = pair.server.told.next() { count += bytes.count }
        #expect(count == 160_000 && pair.client.told.isEmpty)
        pair.end()
    }

    @Test func nobodyListens() throws {
        let pair = try Pair(isSecure: false)
        pair.end()
        let loop = try EventLoop(label: "test")
        let owner = Owner()
        let endpoint = pair.endpoint
        loop.start()
        loop.submit {
            owner.stream = try? Stream(
                to: endpoint, tls: nil, limit: 10, scratch: Scratch(16), loop: loop, owner: owner)
        }
        guard case .failed(.reset(let error)) = owner.told.next() else { return #expect(Bool(false)) }
        #expect(error.description.hasSuffix("Connection refused"))
        let gate = Gate()
        loop.stop { gate.open() }
        #expect(gate.wait())
    }
}
