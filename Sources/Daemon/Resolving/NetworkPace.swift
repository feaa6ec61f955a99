import Base
import Log

/// The rate limit of reactions to network changes: the first few at once, then one a second. A router that announces
/// and withdraws an address all the time could otherwise renew connections without end.
struct NetworkPace {
    /// The number of immediate reactions after a quiet time.
    static let burst = 4
    /// Milliseconds after which one more reaction is allowed.
    static let interval = 1000

    private var left = burst
    private var countedAt: Tick?
    /// When waiting changes are handled; nil if none waits.
    private(set) var nextDeadline: Tick?

    /// Notes a change.
    /// - Returns: Whether to handle it now; otherwise it waits until ``nextDeadline``.
    mutating func happened(at now: Tick) -> Bool {
        guard nextDeadline == nil else { return false }
        if take(at: now) { return true }
        nextDeadline = countedAt?.advanced(milliseconds: Self.interval)
        return false
    }

    /// Whether waiting changes are to be handled now.
    mutating func isDue(at now: Tick) -> Bool {
        guard let due = nextDeadline, due <= now else { return false }
        nextDeadline = nil
        return take(at: now)
    }

    /// The change cannot be read yet.
    mutating func wait(at now: Tick) { nextDeadline = now.advanced(milliseconds: Self.interval) }

    private mutating func take(at now: Tick) -> Bool {
        let more = countedAt.map { now.milliseconds(since: $0) / Self.interval } ?? 0
        left = min(Self.burst, left + more)
        countedAt = left == Self.burst ? now : countedAt?.advanced(milliseconds: more * Self.interval)
        guard left > 0 else { return false }
        left -= 1
        return true
    }
}

extension Report {
    func networkChanged() {
        say(
            .info, .networkChanged, about: "network changes",
            "addresses or routes have changed: connections are made anew")
    }

    func network(isGone: Bool) {
        if isGone {
            say(
                .warning, .networkGone, about: "network",
                "no route leads out of this machine any more: what is cached is answered, and what a server on its own links knows"
            )
        } else {
            say(.notice, .networkBack, about: "network", "the network is back")
        }
    }
}
