package import Base
package import Counters
package import Cryptography
import DNSWire
import Forwarding
import Streams
package import Transport

/// DNS messages on streams: over TCP (RFC 7766) and over TLS (RFC 7858). TLS is strict (RFC 8310 §5): a server without
/// a valid certificate is not asked, and never in the clear.
final class DNSOverStreams: Dialect {
    private let server: Server
    private let answers: DNSAnswers
    private let security: Security
    /// Whether ALPN names the protocol; some servers know ALPN but not this name.
    private var offersProtocol = true

    let limits: StreamLimits

    init(_ server: Server, _ answers: DNSAnswers, _ security: Security) {
        (self.server, self.answers, self.security) = (server, answers, security)
        limits = server.kind == .plain ? Self.oneQuestionEach : Self.kept
    }

    /// A little less than the 30 s after which unbound and BIND close. Others close earlier, after 10 s or less (RFC 7766
    /// §6.2.3 asks for a few seconds): an idle connection is read, so that is seen at once.
    private static let kept = StreamLimits(idleTime: 25_000_000_000)

    /// Answers that do not fit a datagram are rare, and some servers answer only one question on a connection.
    private static let oneQuestionEach = StreamLimits(
        connections: 256, mostConnections: 512, sharesConnections: false, queriesPerConnection: 1, idleTime: 0)

    var isSecure: Bool { security.isSecure }
    var retriesOnFresh: Bool { server.kind != .plain }

    func conversation() -> any ClientConversation { DNSFrames { [answers] in answers.nextID() } }

    func session(to endpoint: Endpoint, at wall: UInt64) throws(TLSError) -> TLSSession? {
        let protocols = offersProtocol ? ["dot"] : []
        return try security.session { context throws(TLSError) in
            try context.session(to: TLSTarget(endpoint.address, server, protocols: protocols), at: wall)
        }
    }

    func knowsAnotherWay(after failure: StreamFailure) -> Bool {
        guard offersProtocol, failure == .tls(.noApplicationProtocol) else { return false }
        offersProtocol = false
        return true
    }

    /// Padded where the length would reveal something of what TLS hides. The conversation sets the id.
    func request(_ ask: Ask, isAnew: Bool, at now: Tick, wall: UInt64) throws(Unaskable) -> [UInt8] {
        try answers.message(ask, to: server, hasEDNS: !isAnew, isPadded: isSecure, at: now)
    }

    func read(_ answer: ConversationAnswer, to ask: Ask, isAnew: Bool, at now: Tick) -> Reading {
        guard case .message(let message) = answer, case .message(let question) = ask,
            let reply = answers.read(message.span, id: 0, to: question)
        else {
            let failure = Failure(.badAnswer, "an answer to another question")
            return .outcome(.failed(failure), code: .servFail, isInStep: false)
        }
        let code = reply.answer.head.responseCode
        return switch answers.meaning(of: reply, from: server, asked: isAnew ? .tried : .used, at: now) {
        case .withoutEDNS: .askAnew
        case .truncated:
            .outcome(.failed(Failure(.badAnswer, "truncated over TCP")), code: .servFail, isInStep: true)
        case .outcome(let outcome): .outcome(outcome, code: code, isInStep: true)
        }
    }
}

extension TLSTarget {
    /// The target for an address of an encrypted server: its certificate must have the server's name, or else the
    /// address.
    init(_ address: IPAddress, _ server: Server, protocols: [String]) {
        self.init(address, hashes: server.hashes, protocols: protocols)
        switch server.host {
        case .name(let name): self.name = name
        case .address: name = server.certificateName
        }
    }
}

extension StreamUpstream {
    /// An upstream for servers that are asked with DNS messages on streams.
    /// - Parameter tls: How encrypted servers are verified; nil: there are none.
    package convenience init(
        _ answers: DNSAnswers, tls: TLSClientContext?, loop: EventLoop, tallies: UpstreamTallies,
        lookup: ServerFinder? = nil, outbox: Outbox? = nil,
        clock: @escaping () -> Tick = { Tick(nanoseconds: Clock.now()) }
    ) {
        self.init(loop: loop, tallies: tallies, lookup: lookup, outbox: outbox, clock: clock) {
            Self.dialect($0, answers, tls)
        }
    }

    /// The dialect for a server: each kind has one line here.
    static func dialect(_ server: Server, _ answers: DNSAnswers, _ tls: TLSClientContext?) -> any Dialect {
        switch (server.kind, tls) {
        case (.https, let tls?): DNSOverHTTPS(server, answers, tls)
        case (.tls, let tls?): DNSOverStreams(server, answers, .tls(tls))
        case (.plain, _), (.tcp, _): DNSOverStreams(server, answers, .plain)
        case (.https, nil), (.tls, nil): NotAsked(Failure(.untrusted, "nothing says whom to trust"))
        case (.account, _): NotAsked(Failure(.badAnswer, "it is not asked with messages"))
        }
    }
}

/// A server that is asked nothing, neither through TLS nor in the clear.
private final class NotAsked: Dialect {
    private let failure: Failure
    let limits = StreamLimits(idleTime: 0)
    let isSecure = true

    init(_ failure: Failure) { self.failure = failure }

    func conversation() -> any ClientConversation { HTTP1() }
    func session(to endpoint: Endpoint, at wall: UInt64) throws(TLSError) -> TLSSession? { throw .library(code: 0) }
    func request(_ ask: Ask, isAnew: Bool, at now: Tick, wall: UInt64) throws(Unaskable) -> [UInt8] {
        throw Unaskable(failure: failure)
    }
    func read(_ answer: ConversationAnswer, to ask: Ask, isAnew: Bool, at now: Tick) -> Reading {
        .outcome(.failed(failure), code: .servFail, isInStep: false)
    }
}
