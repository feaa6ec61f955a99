import Addresses
import DNSCache
import DNSWire

/// What every listener does with a message before anybody is asked: who may ask, what is no question for us, and what
/// the cache knows. Shared by all listeners; nothing here allocates.
struct Reception: Sendable {
    let cache: DNSCache
    private let allow: [Network]
    /// Both loopback networks are allowed as a whole: the common case needs no walk through the list.
    private let allowsLoopback: Bool

    init(cache: DNSCache, allow: [Network]) {
        self.cache = cache
        self.allow = allow
        allowsLoopback = ["127.0.0.0/8", "::1/128"].allSatisfy { whole in
            allow.contains { $0 == Network(whole) }
        }
    }

    enum Outcome {
        /// The reply is written, so many octets.
        case reply(Int)
        case silence
        /// Not in the cache.
        case ask(Question)
        /// The reply is written, and the entry wants a refresh.
        case replyAndRefresh(Int, Question)
    }

    /// - Parameters:
    ///   - limit: the octets that one reply may have here; nil = what the client's UDP message says.
    ///   - reply: holds `limit`, or `Reply.maximumUDPSize`, octets.
    func receive(
        _ message: Span<UInt8>, from client: IPAddress, at now: Tick, limit: Int?, into reply: inout MutableSpan<UInt8>
    ) -> Outcome {
        switch Question.read(message) {
        case .silence:
            return .silence
        case .refuse(let code, let question):
            guard isAllowed(client) else { return refuse(.refused, question, message, into: &reply) }
            return refuse(code, question, message, into: &reply)
        case .question(let question):
            guard isAllowed(client) else {
                return refuse(.refused, question, message, extendedError: .prohibited, into: &reply)
            }
            guard question.recordClass == .in, question.type != .axfr, question.type != .ixfr else {
                return refuse(.refused, question, message, into: &reply)
            }
            let found = cache.answer(
                question, query: message, at: now.seconds, limit: limit ?? Reply.udpLimit(question), into: &reply)
            switch found {
            case .hit(let length): return .reply(length)
            case .hitDueForRefresh(let length): return .replyAndRefresh(length, question)
            case .miss: return .ask(question)
            }
        }
    }

    private func refuse(
        _ code: ResponseCode, _ question: Question?, _ message: Span<UInt8>, extendedError: ExtendedError? = nil,
        into reply: inout MutableSpan<UInt8>
    ) -> Outcome {
        .reply(
            Reply.refuse(code, extendedError: extendedError, question: question, query: message, into: &reply))
    }

    private func isAllowed(_ client: IPAddress) -> Bool {
        if allowsLoopback, client.isLoopback { return true }
        for network in allow where network.contains(client) { return true }
        return false
    }
}
