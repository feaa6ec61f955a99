import DNSWire
import Forwarding

/// The store of the fleet in an explanation.
extension Explained {
    /// The groups that read the store before their servers are asked; nil: none.
    var storeText: String? {
        let nouns = parts.filter(\.part.group.isShared).map { $0.group.title }
        guard let shared = explanation.sharedCache, let last = nouns.last else { return nil }
        let others = nouns.dropLast().joined(separator: ", ")
        let who = others.isEmpty ? last : "\(others) or \(last)"
        return "the shared cache is looked into before \(who) is asked; it is \(shared.state)"
    }

    /// The store's entries, a line for each group.
    var storedLines: [String] {
        let lines = parts.compactMap { part in
            part.part.stored.map { "of \(part.group.title): \(text($0))" }
        }
        guard !lines.isEmpty, explanation.sharedCache?.budget == 0 else { return lines }
        return lines + ["no question waits for it now: it seldom has anything, or takes too long"]
    }

    private func text(_ stored: Explanation.Stored) -> String {
        switch stored {
        case .nothing: return "nothing"
        case .outOfTime: return "an answer whose time is over, or by a clock that is wrong; it is not given"
        case .unknown(let why): return "not known: \(why)"
        case .entry(.noRecord, let elapsed, _): return "no record; written \(elapsed) s ago"
        case .entry(.answer(let answer), let elapsed, let isFresh):
            let state =
                isFresh
                ? "fresh for \(answer.keep - elapsed) s more"
                : "stale, past its TTL for \(elapsed - min(elapsed, answer.keep)) s"
            return "\(summary(answer, age: isFresh ? elapsed : 0)); written \(elapsed) s ago; \(state)"
        }
    }
}
