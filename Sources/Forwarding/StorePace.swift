/// The times of the last reads of a store, and the wait for the next one that follows.
struct StorePace {
    private var nanoseconds: [UInt64] = []
    private var hits: [Bool] = []
    private var oldest = 0
    /// The time within which nearly all of them got a reply (the 95th percentile), in nanoseconds; nil: too few are
    /// known.
    private(set) var usual: UInt64?

    private static let count = 20

    mutating func add(_ time: UInt64, _ isHit: Bool) {
        if nanoseconds.count < Self.count {
            nanoseconds.append(time)
            hits.append(isHit)
        } else {
            (nanoseconds[oldest], hits[oldest]) = (time, isHit)
            oldest = (oldest + 1) % Self.count
        }
        if nanoseconds.count == Self.count { usual = nanoseconds.sorted()[Self.count * 95 / 100 - 1] }
    }

    /// Milliseconds that a question waits.
    var budget: Int {
        guard let usual else { return StoreDesk.mostWait }
        if hits.count(where: { $0 }) * 10 < Self.count {
            // The store seldom helps: questions wait only if that is hardly noticed, so that it can help again.
            return usual <= 1_000_000 ? 1 : 0
        }
        return min(max(1, Int((2 * usual + 999_999) / 1_000_000)), StoreDesk.mostWait)
    }

    var isTooSlow: Bool { usual.map { $0 > UInt64(StoreDesk.mostWait) * 1_000_000 } ?? false }
}
