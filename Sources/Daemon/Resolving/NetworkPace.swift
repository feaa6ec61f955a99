import Base
import Log

/// When changes of the network are heeded: the first few at once, and while they go on, once a second. A router that
/// announces and withdraws an address all the time could otherwise have connections made anew without end.
struct NetworkPace {
    /// How many are heeded at once after a quiet time.
    static let burst = 4
    /// Milliseconds after which one more is heeded.
    static let interval = 1000

    private var left = burst
    private var countedAt: Tick?
    /// When changes that have happened are to be heeded; nil: none waits.
    private(set) var nextDeadline: Tick?

    /// A change has happened.
    /// - Returns: whether it is heeded now; otherwise it is at ``nextDeadline``.
    mutating func happened(at now: Tick) -> Bool {
        guard nextDeadline == nil else { return false }
        if take(at: now) { return true }
        nextDeadline = countedAt?.advanced(milliseconds: Self.interval)
        return false
    }

    /// Whether changes that have waited are to be heeded now.
    mutating func isDue(at now: Tick) -> Bool {
        guard let due = nextDeadline, due <= now else { return false }
        nextDeadline = nil
        return take(at: now)
    }

    /// What has changed cannot be seen yet.
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
