import Base

/// The rate that a plan allows: names a second, and after a quiet second as many at once.
///
/// The sources share the rate. The part of a source is the names that it has sent; it falls as the bucket fills again.
/// The source with the greatest part may use only the bucket. The smaller the part of a source, the more of a reserve
/// it may use as well. The sources of a network on a link have seven eighths of the reserve together. In the long run
/// no more names are sent than the plan allows, whatever the sources.
struct TokenBucket {
    private let perSecond: Double
    private var tokens: Double
    private var filledAt: Tick?
    /// The names sent for which the bucket has not been filled again.
    private var spent = SourceCounts<Double>()
    /// The greatest part of a source or a network.
    private var most = 0.0
    /// Limits the reports that the bucket is empty.
    var news = News()

    /// The parts of further sources are not recorded: these sources may use the reserve, which is bounded itself.
    private static let maximumSources = 1024
    /// A part below this value is forgotten.
    private static let leastPart = 0.02

    init(perSecond: Int) {
        self.perSecond = Double(perSecond)
        tokens = Double(perSecond)
    }

    private var reserve: Double { max(1, perSecond / 8) }

    /// The names that a source has sent lately.
    func spent(by source: Source) -> Double { spent[source] }

    mutating func fill(at now: Tick) {
        if let filledAt, filledAt < now {
            let seconds = Double(now.nanoseconds - filledAt.nanoseconds) / 1e9
            let before = perSecond - tokens
            tokens = min(perSecond, tokens + seconds * perSecond)
            if before > 0, most > 0 {
                spent.scale(by: (perSecond - tokens) / before, least: Self.leastPart)
                most = spent.most
            }
        }
        filledAt = filledAt.map { max($0, now) } ?? now
    }

    /// Whether one more name of a source may be sent now. Fill the bucket first.
    func hasRoom(for source: Source) -> Bool {
        if tokens >= 1 { return true }
        guard most > 0 else { return false }
        let part = source.network == nil ? reserve : reserve * 7 / 8
        return tokens - 1 >= -part * (1 - spent(by: source) / most)
    }

    /// Whether the whole reserve is used up.
    var isEmpty: Bool { tokens - 1 < -reserve }

    /// Whether more names wait than the bucket has room for, so that their sources matter.
    func isShort(for count: Int) -> Bool { tokens < Double(count) }

    mutating func take(for source: Source) {
        tokens -= 1
        guard spent.count < Self.maximumSources || spent[source] > 0 else { return }
        spent.add(1, to: source)
        most = max(most, spent[source], source.network.map { spent[network: $0] } ?? 0)
    }

    /// When there is room for one more name of any source.
    var nextRoom: Tick? {
        guard let filledAt, tokens < 1 else { return filledAt }
        // A nanosecond is added, so that rounding never wakes the loop too early.
        return Tick(nanoseconds: filledAt.nanoseconds + UInt64((1 - tokens) / perSecond * 1e9) + 1)
    }
}

/// Decides when a condition is logged: when it begins, not while it lasts.
struct News {
    private var happenedAt: Tick?

    /// Milliseconds without an occurrence after which a condition counts as new.
    private static let quiet = 60_000

    /// Records that the condition occurs, and returns whether it has just begun.
    mutating func isNews(at now: Tick) -> Bool {
        defer { happenedAt = now }
        return happenedAt.map { now.milliseconds(since: $0) > Self.quiet } ?? true
    }
}
