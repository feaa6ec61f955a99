import Base
import Forwarding
import Streams

/// DNS messages on streams: over TCP (RFC 7766) and over TLS (RFC 7858). TLS is strict (RFC 8310 §5): a server without
/// a valid certificate is not asked, and never in the clear.
final class DNSOverStreams: Dialect {
    private let server: Server
    private let answers: DNSAnswers
    /// Whether queries are padded, since their lengths would reveal some of the contents of TLS.
    private let isPadded: Bool
    private(set) var keepAlive: UInt16?

    init(_ server: Server, _ answers: DNSAnswers) {
        (self.server, self.answers, isPadded) = (server, answers, server.kind == .tls)
    }

    func conversation() -> any ClientConversation { DNSFrames { [answers] in answers.nextID() } }

    /// The conversation sets the ID.
    func request(_ ask: Ask, isRewritten: Bool, at now: Tick, wall: UInt64) throws(Failure) -> [UInt8] {
        try answers.message(
            ask, to: server, isRewritten: isRewritten, keepAlive: server.kind != .plain, isPadded: isPadded, at: now)
    }

    func read(_ answer: ConversationAnswer, to ask: Ask, isRewritten: Bool, at now: Tick) -> Reading {
        guard case .message(let message) = answer,
            let reading = answers.reading(
                of: message, to: ask, from: server, isRewritten: isRewritten, keepAlive: &keepAlive, at: now)
        else { return .outOfSync("an answer to another question") }
        return reading
    }
}
