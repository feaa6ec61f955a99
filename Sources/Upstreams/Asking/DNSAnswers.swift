package import Base
package import Counters
import DNSWire
import Forwarding
import Transport

/// Writes the queries to a group's DNS servers and reads their answers, and remembers what the answers show about the
/// servers. Confined to the forwarder's loop.
package final class DNSAnswers {
    /// `negativeTTL`, for an answer that says "no such record" without an SOA.
    package var negativeTTL: UInt32
    /// `trustAD`: whether the AD bit of resolvers beyond this machine counts too.
    package var trustsAD: Bool
    /// `routeIp`: the address whose network is sent with each question (RFC 7871); nil: none.
    package var clientSubnet: IPAddress?
    /// Messages that were not the awaited answers.
    package internal(set) var mismatches = MismatchCounters()
    /// Told of a server whose answer is right but for the case of its letters.
    package var otherCase: (Server) -> Void = { _ in }
    var edns = EDNSKnowledge()
    private var random = Random()

    package init(negativeTTL: UInt32, trustsAD: Bool = false) {
        (self.negativeTTL, self.trustsAD) = (negativeTTL, trustsAD)
    }

    /// What an answer means.
    enum Meaning {
        /// The server may not know EDNS: ask the same again without.
        case withoutEDNS
        case truncated
        case outcome(Outcome)
    }

    /// An unpredictable id (RFC 5452 §9.2).
    func nextID() -> UInt16 { random.uint16() }

    func random64() -> UInt64 { random.uint64() }

    /// A query for a connection, with the id 0, which conversations with ids of their own replace.
    /// - Parameters:
    ///   - isRewritten: Whether it was asked before, with EDNS.
    ///   - keepAlive: Whether to ask for how long the server keeps idle connections.
    ///   - isPadded: Whether to pad it, since its length would reveal something of what TLS hides.
    func message(
        _ ask: Ask, to server: Server, isRewritten: Bool, keepAlive: Bool = false, isPadded: Bool, at now: Tick
    ) throws(Unaskable) -> [UInt8] {
        guard case .message(let question) = ask else { throw Unaskable(.badAnswer, "a resolver is asked questions") }
        return Query.message(
            id: 0, question.name, type: question.type, dnssecOK: question.dnssecOK,
            checkingDisabled: question.checkingDisabled, hasEDNS: !isRewritten && edns.includes(server, at: now),
            subnet: clientSubnet, keepAlive: keepAlive, paddedTo: isPadded ? Query.paddingBlock : 1)
    }

    /// What a message on a connection means; nil if it does not answer the question.
    /// - Parameters:
    ///   - isRewritten: Whether it answers a query without EDNS, after one with it.
    ///   - keepAlive: Gets for how long the server keeps idle connections, as it says, in tenths of a second.
    func reading(
        of message: [UInt8], to ask: Ask, from server: Server, isRewritten: Bool, keepAlive: inout UInt16?, at now: Tick
    ) -> Reading? {
        guard case .message(let question) = ask, let reply = read(message.span, id: 0, to: question) else { return nil }
        keepAlive = reply.keepAlive
        let code = reply.answer.head.responseCode
        return switch classify(reply, from: server, asked: isRewritten ? .tried : .used, at: now) {
        case .withoutEDNS: .retryRewritten
        case .truncated: .failed(.badAnswer, "truncated, which no answer on a connection may be")
        case .outcome(let outcome): .outcome(outcome, code: code, provesConnectionInSync: true)
        }
    }

    /// The reply in a message; nil if it does not answer the question.
    func read(_ message: Span<UInt8>, id: UInt16, to question: MessageQuestion) -> Response.Reply? {
        do throws(WireError) {
            return try Response.read(
                message, id: id, to: question.name, type: question.type, defaultNegativeTTL: negativeTTL)
        } catch {
            if error == .mismatch { mismatches.otherQuery += 1 } else { mismatches.malformed += 1 }
            return nil
        }
    }

    /// What a reply means for the query. FORMERR is never passed on to clients, whose question was well-formed; it is no
    /// verdict on the server either, since it may be about this question alone.
    ///
    /// AD says that the server has validated the answer. It proves nothing when it came over a network, where an
    /// attacker on the path can set it (RFC 4035 §4.9.3); over loopback it counts.
    func classify(
        _ reply: consuming Response.Reply, from server: Server, asked: EDNSUse, at now: Tick
    ) -> Meaning {
        if reply.responseCode.mayBeAboutEDNS {
            if asked == .used { return .withoutEDNS }
        } else if asked == .tried {
            edns.lacks(server, at: now)
        }
        if reply.responseCode == .badVers {
            return .outcome(.failed(Failure(.badAnswer, "\(reply.responseCode), without EDNS too")))
        }
        if reply.responseCode == .formErr {
            var refusal = reply.answer
            refusal.head.responseCode = .servFail
            refusal.add(.other, text: "\(server) finds the question malformed (FORMERR)")
            return .outcome(.answer(refusal))
        }
        if reply.truncated { return .truncated }
        if !trustsAD, !server.isOnLoopback { reply.answer.head.authenticData = false }
        return .outcome(.answer(reply.answer))
    }
}
