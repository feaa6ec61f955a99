import Base

/// The ages of a store's entries, by clocks that may differ.
struct StoreClock {
    /// The largest lead of another daemon's wall clock over our ticks, in seconds, learnt from an entry dated ahead;
    /// retained for an hour and added to every entry's age. If it exceeds this machine's wall clock, one of the two
    /// clocks is wrong. If this machine's clock is set, the difference changes with it.
    private var skew: (beyondTicks: Int64, until: Tick)?

    /// Seconds by which an entry may be in the future: clocks are never quite the same.
    static let tolerance: UInt64 = 2
    /// In milliseconds.
    private static let skewTime = 3_600_000

    /// The use of an entry now.
    enum Worth: Equatable {
        /// Fresh. `elapsed`: its age in seconds. `isDue`: past `prefetchAt` per cent of its lifetime.
        case fresh(elapsed: UInt32, isDue: Bool)
        /// So many seconds since it was written; to be given only if no server answers.
        case stale(elapsed: UInt32)
        /// Its time is over.
        case nothing
        /// It is in the future: the writer's clock or this machine's is wrong.
        case ahead

        var isFresh: Bool { if case .fresh = self { true } else { false } }
    }

    /// - Parameter wall: seconds since 1970.
    mutating func worth(
        _ entry: SharedEntry, isStaleCopy: Bool, _ settings: SharedSettings, wall: UInt64, at now: Tick
    ) -> Worth {
        guard entry.stored <= wall + Self.tolerance else {
            let ahead = max(lead(wall, now), min(entry.stored - wall, UInt64(StoreDesk.mostStale)))
            skew = (Self.beyondTicks(wall, now) + Int64(ahead), now.advanced(milliseconds: Self.skewTime))
            return .ahead
        }
        let age = (wall > entry.stored ? wall - entry.stored : 0) + lead(wall, now)
        let lifetime = UInt64(entry.lifetime)
        if isStaleCopy {
            // It is never fresh, whatever the clocks: else the store would still have the entry itself.
            let elapsed = max(age, lifetime)
            return elapsed < lifetime + UInt64(settings.staleSeconds) ? .stale(elapsed: UInt32(elapsed)) : .nothing
        }
        guard age < lifetime else { return .nothing }
        let share = settings.prefetchAt == 0 ? 75 : settings.prefetchAt
        return .fresh(elapsed: UInt32(age), isDue: age * 100 >= lifetime * UInt64(share))
    }

    /// The seconds by which a clock of the fleet is known to be ahead of this machine's.
    private func lead(_ wall: UInt64, _ now: Tick) -> UInt64 {
        guard let skew, now < skew.until else { return 0 }
        return UInt64(max(0, skew.beyondTicks - Self.beyondTicks(wall, now)))
    }

    private static func beyondTicks(_ wall: UInt64, _ now: Tick) -> Int64 {
        Int64(min(wall, UInt64(UInt32.max))) - Int64(now.seconds)
    }
}
