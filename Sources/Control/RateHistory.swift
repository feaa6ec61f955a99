/// The number of questions in each of the last sixty minutes.
struct RateHistory {
    /// Full minutes, the newest last.
    private(set) var minutes: [UInt64] = []
    /// When the current minute began, in nanoseconds, and the count of questions at that time.
    private var begun: UInt64
    private var asked: UInt64 = 0

    static let count = 60
    static let minute: UInt64 = 60_000_000_000

    init(at now: UInt64) { begun = now }

    /// Questions in the current minute.
    func thisMinute(_ total: UInt64) -> UInt64 { total > asked ? total - asked : 0 }

    /// When ``tick(_:at:)`` is to be called next.
    var next: UInt64 { begun + Self.minute }

    /// - Parameter total: Questions since the start.
    mutating func tick(_ total: UInt64, at now: UInt64) {
        guard now >= next else { return }
        let passed = (now - begun) / Self.minute
        minutes.append(thisMinute(total))
        // The machine or this queue slept for several minutes: their questions are attributed to the first of them.
        for _ in 1..<max(1, min(passed, UInt64(Self.count))) { minutes.append(0) }
        minutes.removeFirst(max(0, minutes.count - Self.count))
        asked = total
        begun += passed * Self.minute
    }
}
