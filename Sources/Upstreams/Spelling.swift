import Base
import Forwarding

/// A query as it went to a local resolver. Confined to the resolver's loop.
final class SentQuery {
    let id: UInt16
    let question: MessageQuestion
    let server: Server
    let bytes: [UInt8]
    /// Whether it has an OPT record.
    let edns: EDNS
    /// The name has a letter in upper case, so an answer shows whether its server repeats them.
    let isMixed: Bool
    /// On the clock's scale, in nanoseconds.
    let at: UInt64
    /// Something came that was the answer but for its letters' case.
    var sawOtherCase = false

    init(
        id: UInt16, question: MessageQuestion, server: Server, bytes: [UInt8], edns: EDNS,
        isMixed: Bool, at: UInt64
    ) {
        (self.id, self.question, self.server, self.bytes) = (id, question, server, bytes)
        (self.edns, self.isMixed, self.at) = (edns, isMixed, at)
    }

    enum EDNS {
        case used
        /// The server is known not to understand it.
        case omitted
        /// The same query with it has just been answered with an error.
        case tried
    }
}

/// Which local resolvers repeat the letters' case of a question, so that a forger has to guess it too. One that does
/// not is remembered and asked in lower case.
struct Spelling {
    private var repeatsCase: [Server: Bool] = [:]

    /// Servers remembered; more are not configured anywhere, and those past it are learnt anew with each answer.
    static let maximumServers = 64

    /// nil: not known yet.
    func repeatsCase(_ server: Server) -> Bool? { repeatsCase[server] }

    /// Forgets all servers but these.
    mutating func keep(_ servers: [Server]) {
        repeatsCase = repeatsCase.filter { servers.contains($0.key) }
    }

    /// Whether a reply, right in everything else, is believed.
    ///
    /// A server not known yet is, and so becomes known: who could forge this reply guessed id and port already. A bare
    /// refusal has no letters to judge; all a forger gets by it is that another server is asked.
    ///
    /// - Parameter repeats: nil for a reply without a question.
    mutating func allows(_ repeats: Bool?, _ sent: SentQuery) -> Bool {
        guard sent.isMixed, let repeats else { return true }
        switch repeatsCase[sent.server] {
        case nil:
            if repeatsCase.count < Self.maximumServers { repeatsCase[sent.server] = repeats }
            return true
        case true where !repeats:
            sent.sawOtherCase = true
            return false
        default: return true
        }
    }

    /// The wait for the true answer is over. If all that came was in another case, it was no forger's: there is another
    /// server at this address now, and it is judged anew.
    mutating func waitedInVain(_ sent: SentQuery) {
        if sent.sawOtherCase { repeatsCase[sent.server] = nil }
    }
}
