import Base
import Forwarding

/// A query as it was sent to a local resolver. Confined to the forwarder's loop.
final class SentQuery {
    let id: UInt16
    let question: MessageQuestion
    let server: Server
    let bytes: [UInt8]
    /// Whether it has an OPT record.
    let edns: EDNS
    /// Whether the name has a letter in upper case, so that an answer shows if the server repeats the case.
    let isMixed: Bool
    /// When it was sent, in the time of ``Clock``.
    let at: UInt64
    /// Whether a message came that was the answer except for its letters' case.
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
        /// The server is known not to support it.
        case omitted
        /// The same query with EDNS has just been answered with an error.
        case tried
    }
}

/// Remembers which local resolvers repeat the letters' case of a question, so that a forger has to guess it too. The
/// others are asked in lower case.
struct Spelling {
    private var repeatsCase: [Server: Bool] = [:]

    /// The most servers remembered. Configurations have fewer; for further ones each answer is judged anew.
    static let maximumServers = 64

    /// Whether the server repeats the case; nil: not known yet.
    func repeatsCase(_ server: Server) -> Bool? { repeatsCase[server] }

    /// Forgets all servers but these.
    mutating func keep(_ servers: [Server]) {
        repeatsCase = repeatsCase.filter { servers.contains($0.key) }
    }

    /// Whether a reply that is right in everything else is accepted.
    ///
    /// The first reply of a server decides whether it repeats the case, and is accepted: a forger of it would have
    /// guessed id and port. A bare refusal has no letters to compare; by forging one, an attacker only causes another
    /// server to be asked.
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

    /// The query has timed out. If all messages that came had another case, they were not forged: the server at this
    /// address has changed, and is judged anew.
    mutating func waitedInVain(_ sent: SentQuery) {
        if sent.sawOtherCase { repeatsCase[sent.server] = nil }
    }
}
