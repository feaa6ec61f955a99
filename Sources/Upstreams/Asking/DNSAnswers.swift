package import Base
package import Counters
import DNSWire
import Forwarding
import Transport

/// Writes the queries to a group's DNS servers, reads their answers, and remembers the properties of servers that the
/// answers show. Confined to the forwarder's loop.
package final class DNSAnswers {
    /// `negativeTTL`, for a NODATA or NXDOMAIN answer without an SOA.
    package var negativeTTL: UInt32
    /// `trustAD`: whether the AD bit of resolvers beyond this machine counts too.
    package var trustsAD: Bool
    /// `routeIp`: the address whose network is sent with each question (RFC 7871); nil if none is sent.
    package var clientSubnet: IPAddress?
    /// Counts the messages that were not the awaited answers.
    package let tally: Tally
    /// Called with a server whose answer is right except for the case of letters.
    package var otherCase: (Server) -> Void = { _ in }
    var edns = EDNSKnowledge()
    private var random = Random()

    package init(negativeTTL: UInt32, trustsAD: Bool = false, tally: Tally = Tally(.udp)) {
        (self.negativeTTL, self.trustsAD, self.tally) = (negativeTTL, trustsAD, tally)
    }

    /// The meaning of an answer.
    enum Meaning {
        /// The server may not know EDNS: repeat the query without it.
        case withoutEDNS
        case truncated
        case outcome(Outcome)
    }

    /// An unpredictable ID (RFC 5452 §9.2).
    func nextID() -> UInt16 { random.uint16() }

    func random64() -> UInt64 { random.uint64() }

    /// A query for a connection, with the ID 0, which conversations with IDs of their own replace.
    /// - Parameters:
    ///   - isRewritten: Whether the query was sent before with EDNS, and is now sent without.
    ///   - keepAlive: Whether to ask how long the server keeps idle connections open.
    ///   - isPadded: Whether to pad the query, since its length would reveal some of the contents of TLS.
    func message(
        _ ask: Ask, to server: Server, isRewritten: Bool, keepAlive: Bool = false, isPadded: Bool, at now: Tick
    ) throws(Failure) -> [UInt8] {
        guard case .message(let question) = ask else { throw Failure(.badAnswer, "a resolver is asked questions") }
        return Query.message(
            id: 0, question.name, type: question.type, dnssecOK: question.dnssecOK,
            checkingDisabled: question.checkingDisabled, hasEDNS: !isRewritten && edns.includes(server, at: now),
            subnet: clientSubnet, keepAlive: keepAlive, paddedTo: isPadded ? Query.paddingBlock : 1)
    }

    /// The meaning of a message on a connection; nil if the message does not answer the question.
    /// - Parameters:
    ///   - isRewritten: Whether the message answers a query without EDNS, after a query with EDNS.
    ///   - keepAlive: Receives how long the server keeps idle connections open, if it announces that, in tenths of a
    ///     second.
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

    /// The reply in a message; nil if the message does not answer the question.
    func read(_ message: Span<UInt8>, id: UInt16, to question: MessageQuestion) -> Response.Reply? {
        do throws(WireError) {
            return try Response.read(
                message, id: id, to: question.name, type: question.type, defaultNegativeTTL: negativeTTL)
        } catch {
            tally.count(error == .mismatch ? .mismatchOtherQuery : .mismatchMalformed)
            return nil
        }
    }

    /// The meaning of a reply for the query. FORMERR is never passed on to clients, whose question was well-formed; nor
    /// does it count against the server, since it may be about this question alone.
    ///
    /// AD means that the server has validated the answer. AD proves nothing if the answer came over a network, where an
    /// attacker on the path can set it (RFC 4035 §4.9.3); over loopback AD counts.
    func classify(_ reply: consuming Response.Reply, from server: Server, asked: EDNSUse, at now: Tick) -> Meaning {
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
            refusal.add(.other, text: "\(server.publicDescription) finds the question malformed (FORMERR)")
            return .outcome(.answer(refusal))
        }
        if reply.truncated { return .truncated }
        if !trustsAD, !server.isOnLoopback { reply.answer.head.authenticData = false }
        return .outcome(.answer(reply.answer))
    }
}
