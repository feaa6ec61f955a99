/// Whether a server repeats the case of a question's letters, so that a forger has to guess the case too. A server that
/// does not repeat the case is remembered and asked in lower case.
struct Spelling {
    /// Whether the server repeats the case; nil while that is not known.
    private(set) var repeatsCase: Bool?

    /// Whether a reply that is right in all other respects is accepted.
    ///
    /// The first reply of a server decides whether it repeats the case, and is accepted: a forger of it would have
    /// guessed ID and port. A bare refusal has no letters to compare; by forging one, an attacker only causes another
    /// server to be asked.
    ///
    /// - Parameter repeats: Whether the reply repeats the case; nil if the reply has no question.
    mutating func allows(_ repeats: Bool?, _ sent: SentQuery) -> Bool {
        guard sent.isMixed, let repeats else { return true }
        switch repeatsCase {
        case nil:
            repeatsCase = repeats
            return true
        case true where !repeats:
            sent.sawOtherCase = true
            return false
        default: return true
        }
    }

    /// The query has timed out. If all messages had another case, they were not forged: the server at this address has
    /// changed, and is judged again.
    mutating func timedOut(_ sent: SentQuery) {
        if sent.sawOtherCase { repeatsCase = nil }
    }
}
