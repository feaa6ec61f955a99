import Base

/// What a plan allows: so many names a second, and after a quiet second as many at once.
struct TokenBucket {
    private let perSecond: Double
    private var tokens: Double
    private var filledAt: Tick?
    /// That it is empty.
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
        // A nanosecond more than computed, so that rounding never wakes too early for nothing.
        return Tick(nanoseconds: filledAt.nanoseconds + UInt64((1 - tokens) / perSecond * 1e9) + 1)
    }
}

/// Something worth a line in the log when it begins, and not while it goes on.
struct News {
    private var happenedAt: Tick?

    /// What did not happen for so long has begun anew when it does, in milliseconds.
    private static let quiet = 60_000

    /// It happens: whether that is news.
    mutating func isNews(at now: Tick) -> Bool {
        defer { happenedAt = now }
        return happenedAt.map { now.milliseconds(since: $0) > Self.quiet } ?? true
    }
}
