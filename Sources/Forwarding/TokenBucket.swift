import Base

/// The rate that a plan allows: names a second, and after a quiet second as many at once.
struct TokenBucket {
    private let perSecond: Double
    private var tokens: Double
    private var filledAt: Tick?
    /// Limits the reports that it is empty.
    var news = News()

    init(perSecond: Int) {
        self.perSecond = Double(perSecond)
        tokens = Double(perSecond)
    }

    /// How many names may go out now.
    mutating func room(at now: Tick) -> Int {
        if let filledAt, filledAt < now {
            let seconds = Double(now.nanoseconds - filledAt.nanoseconds) / 1e9
            tokens = min(perSecond, tokens + seconds * perSecond)
        }
        filledAt = filledAt.map { max($0, now) } ?? now
        return Int(tokens)
    }

    mutating func take(_ count: Int) {
        tokens -= Double(count)
    }

    /// When there is room for one more name.
    var nextRoom: Tick? {
        guard let filledAt, tokens < 1 else { return filledAt }
        // A nanosecond is added, so that rounding never wakes the loop too early.
        return Tick(nanoseconds: filledAt.nanoseconds + UInt64((1 - tokens) / perSecond * 1e9) + 1)
    }
}

/// Decides when a condition is worth a line in the log: when it begins, not while it goes on.
struct News {
    private var happenedAt: Tick?

    /// A condition that did not occur for this long counts as beginning anew, in milliseconds.
    private static let quiet = 60_000

    /// Records that the condition occurs, and returns whether it has just begun.
    mutating func isNews(at now: Tick) -> Bool {
        defer { happenedAt = now }
        return happenedAt.map { now.milliseconds(since: $0) > Self.quiet } ?? true
    }
}
