import Base
import Cryptography
import DNSWire
import Forwarding
import HTTPDNS
import ShellTestSupport
import Streams
import Testing
import Transport

@testable import Upstreams

/// The connections to an HTTPDNS server that may carry another request: over real sockets, plain and through TLS.
@Suite struct ServiceUpstreamTests {
    private static let asked = Name("www.example.com")!
    private static let next = Name("next.example.com")!

    /// The service's answer: the name has this address, and no IPv6 address.
    private static func body(_ name: Name, _ address: String) -> String { "\(name).:\(address),60-0" }

    private static func response(_ body: String, _ head: String = "200 OK") -> String {
        "HTTP/1.1 \(head)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private static func answered(_ name: Name, _ address: String) -> Outcome {
        .addresses([
            NameAddresses(name: name, ipv4: .addresses([IPAddress(address)!], ttl: 60), ipv6: .noRecord)
        ])
    }

    private static let first = response(body(asked, "192.0.2.1"))
    private static let second = response(body(next, "192.0.2.2"))

    /// An upstream of one server, and the outcomes of its requests.
    private final class Asking: @unchecked Sendable {
        let loop: EventLoop
        /// The upstream is used on the loop alone.
        let upstream: StreamUpstream
        private let endpoint: Endpoint
        private let outcomes = Arrivals<Outcome>()
        private var requests: UInt32 = 0

        init(_ server: ConversingServer) throws {
            loop = try EventLoop(label: "test")
            upstream = StreamUpstream(
                loop: loop,
                access: ServiceAccess(
                    account: try TencentAccount(.https(token: Secret(Array("67890".utf8)))),
                    AccountKeys("httpdns", names: "domains.intercept", .https(token: Secret([]))),
                    try server.certificate.map { .tls(try TLSClientContext(TLSPolicy(anchors: $0)), TLSTarget()) }
                        ?? .plain,
                    serverName: nil))
            let outcomes = outcomes
            endpoint = server.endpoint
            upstream.settle = { _, outcome, _ in outcomes.append(outcome) }
            loop.start()
        }

        /// - Parameter before: Done on the loop right before the request: octets that come meanwhile are not read.
        func ask(_ name: Name, after before: @escaping @Sendable () -> Void = {}) -> Outcome? {
            requests += 1
            let request = QueryID(standalone: requests, of: .httpdns)
            loop.submit { [self] in
                before()
                upstream.ask(
                    request, Server(endpoint, .account), .addresses([name], .both), at: Tick(nanoseconds: Clock.now()))
            }
            return outcomes.next()
        }

        func end() {
            let gate = Gate()
            loop.submit { [self] in upstream.close() }
            loop.stop { gate.open() }
            #expect(gate.wait())
        }
    }

    @Test(arguments: [false, true]) func aConnectionCarriesOneRequestAfterTheOther(isSecure: Bool) throws {
        let server = try ConversingServer([.init(Self.first), .init(Self.second)], isSecure: isSecure)
        let asking = try Asking(server)
        #expect(asking.ask(Self.asked) == Self.answered(Self.asked, "192.0.2.1"))
        #expect(asking.ask(Self.next) == Self.answered(Self.next, "192.0.2.2"))
        #expect(server.connections == [1, 1])
        asking.end()
    }

    /// Octets after a response are never the answer to the next request: the connection ends there.
    @Test(
        arguments: [
            response(body(next, "192.0.2.66")), "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\r\n", "x",
        ], [false, true])
    func whatIsLeftOverAnswersNobody(stray: String, isSecure: Bool) throws {
        let server = try ConversingServer([.init(Self.first + stray), .init(Self.second)], isSecure: isSecure)
        let asking = try Asking(server)
        #expect(asking.ask(Self.asked) == Self.answered(Self.asked, "192.0.2.1"))
        #expect(asking.ask(Self.next) == Self.answered(Self.next, "192.0.2.2"))
        #expect(server.connections == [1, 2])
        asking.end()
    }

    /// A body after a response that has none (RFC 9112 §6.3) is left over as well.
    @Test(arguments: ["204 No Content", "304 Not Modified"]) func aBodyThatMayNotBe(head: String) throws {
        let stray = Self.response(Self.response(Self.body(Self.next, "192.0.2.66")), head)
        let server = try ConversingServer([.init(stray), .init(Self.second)])
        let asking = try Asking(server)
        guard case .failed(let failure) = asking.ask(Self.asked) else { return #expect(Bool(false)) }
        #expect(failure.statusCode == Int(head.prefix(3)))
        #expect(asking.ask(Self.next) == Self.answered(Self.next, "192.0.2.2"))
        #expect(server.connections == [1, 2])
        asking.end()
    }

    /// The answer to another request, or no answer: it is unknown to which request the next response belongs.
    @Test(
        arguments: [body(next, "192.0.2.66"), "<html>captive portal</html>"], [false, true])
    func aConnectionWhoseAnswerIsNoneEnds(wrong: String, isSecure: Bool) throws {
        let server = try ConversingServer([.init(Self.response(wrong)), .init(Self.second)], isSecure: isSecure)
        let asking = try Asking(server)
        guard case .failed(let failure) = asking.ask(Self.asked) else { return #expect(Bool(false)) }
        #expect(failure.kind == .badAnswer)
        #expect(asking.ask(Self.next) == Self.answered(Self.next, "192.0.2.2"))
        #expect(server.connections == [1, 2])
        asking.end()
    }

    /// An error has no name: it may belong to another request, and the right answer may still come.
    @Test func aConnectionWithAnErrorStatusEnds() throws {
        let server = try ConversingServer([.init(Self.response("", "429 Too Many Requests")), .init(Self.second)])
        let asking = try Asking(server)
        guard case .failed(let failure) = asking.ask(Self.asked) else { return #expect(Bool(false)) }
        #expect(failure.kind == .tooOften)
        #expect(asking.ask(Self.next) == Self.answered(Self.next, "192.0.2.2"))
        #expect(server.connections == [1, 2])
        asking.end()
    }

    /// A service that asks for a pause is left alone for that time; a service that only fails is not.
    @Test(arguments: [(503, 17), (503, nil), (429, 17), (500, 17)] as [(Int, Int?)])
    func aServiceThatSaysWhenToComeBack(status: Int, seconds: Int?) throws {
        let field = seconds.map { "Retry-After: \($0)\r\n" } ?? ""
        let server = try ConversingServer([.init("HTTP/1.1 \(status) No\r\n\(field)Content-Length: 0\r\n\r\n")])
        let asking = try Asking(server)
        guard case .failed(let failure) = asking.ask(Self.asked) else { return #expect(Bool(false)) }
        let isLeftAlone = status == 429 || status == 503 && seconds != nil
        #expect(failure.kind == (isLeftAlone ? .tooOften : .badAnswer) && failure.statusCode == status)
        #expect(failure.retryAfter == (isLeftAlone ? seconds : nil))
        asking.end()
    }

    /// Octets come before the next request is sent, and are not read yet.
    @Test(arguments: [false, true]) func whatComesUnaskedAnswersNobody(isSecure: Bool) throws {
        let server = try ConversingServer(
            [.init(Self.first, stray: Self.response(Self.body(Self.next, "192.0.2.66"))), .init(Self.second)],
            isSecure: isSecure)
        let asking = try Asking(server)
        #expect(asking.ask(Self.asked) == Self.answered(Self.asked, "192.0.2.1"))
        #expect(asking.ask(Self.next) { server.strayIsSent() } == Self.answered(Self.next, "192.0.2.2"))
        #expect(server.connections == [1, 2])
        asking.end()
    }

    // MARK: Bodies that the end of the connection ends

    private static let untilClose = "HTTP/1.1 200 OK\r\n\r\n"

    @Test(arguments: [false, true]) func aBodyUntilTheEndIsTaken(isSecure: Bool) throws {
        let whole = Self.untilClose + Self.body(Self.asked, "192.0.2.1")
        let server = try ConversingServer([.init(whole, then: .goodbye)], isSecure: isSecure)
        let asking = try Asking(server)
        #expect(asking.ask(Self.asked) == Self.answered(Self.asked, "192.0.2.1"))
        asking.end()
    }

    /// Any host on the path can end a TCP connection at any moment, also with TLS.
    @Test func withoutCloseNotifyABodyUntilTheEndIsNone() throws {
        let cut = Self.untilClose + "\(Self.asked).:192.0.2.1"
        let server = try ConversingServer([.init(cut, then: .cut)], isSecure: true)
        let asking = try Asking(server)
        guard case .failed(let failure) = asking.ask(Self.asked) else { return #expect(Bool(false)) }
        #expect(failure.kind == .badAnswer)
        asking.end()
    }

    /// An empty body would mean that the name has no record.
    @Test(arguments: [ConversingServer.End.cut, .goodbye], [false, true])
    func anEmptyBodyUntilTheEndIsNone(end: ConversingServer.End, isSecure: Bool) throws {
        let server = try ConversingServer([.init(Self.untilClose, then: end)], isSecure: isSecure)
        let asking = try Asking(server)
        guard case .failed(let failure) = asking.ask(Self.asked) else { return #expect(Bool(false)) }
        #expect(failure.kind == .badAnswer)
        asking.end()
    }
}
