import Base
import Forwarding

/// Questions that a datagram does not answer.
extension LocalUpstream {
    func askOverTCP(_ sent: SentQuery, at now: Tick) {
        let query = sent.query
        guard !query.isOverTCP else { return }
        query.isOverTCP = true
        query.isRepeat = sent.isRepeat
        streams.ask(query.id, query.server.server, .message(query.question), at: now)
    }

    /// The answer over TCP, where nobody can guess. While datagrams are awaited as well, a failure ends nothing. That it came
    /// is no reason to trust in other letters: they may have been a forger's.
    func streamsSettled(_ query: LocalQuery, _ outcome: Outcome, toRepeat: Bool) {
        switch outcome {
        case .failed where !query.sent.isEmpty: query.isOverTCP = false
        default: end(query, outcome, toRepeat: toRepeat || query.isRepeat)
        }
    }
}
