/// One or more counts that only grow, so that the difference of two is the increase between them.
protocol Growing: Sendable {
    init()
    /// Each count.
    static var counts: [WritableKeyPath<Self, UInt64>] { get }
}

extension Growing {
    /// The increase since `before`; 0 for a count that began again.
    func since(_ before: Self) -> Self { combined(before) { $0 > $1 ? $0 - $1 : 0 } }
    static func + (a: Self, b: Self) -> Self { a.combined(b, by: +) }

    private func combined(_ other: Self, by operation: (UInt64, UInt64) -> UInt64) -> Self {
        Self.counts.reduce(into: self) { $0[keyPath: $1] = operation($0[keyPath: $1], other[keyPath: $1]) }
    }
}

extension UInt64: Growing {
    static var counts: [WritableKeyPath<UInt64, UInt64>] { [\.self] }
}

/// The increase of totals in each of the latest steps of one width.
struct Growth<Total: Growing>: Sendable {
    /// The newest last, which is not over yet.
    private var steps: [Total]
    /// The totals when growth was added last.
    private var before = Total()
    private let most: Int

    /// - Parameters:
    ///   - steps: Those to continue, with totals that begin at 0.
    ///   - most: The most full steps that are stored.
    init(_ steps: [Total] = [Total()], most: Int = Steps.Width.minute.most) {
        (self.steps, self.most) = (steps, most)
    }

    /// - Parameter passed: The steps that have passed, at least 1. More than one: the machine or the daemon slept, and
    ///   all growth is attributed to the first of them.
    mutating func pass(_ passed: Int, _ total: Total) {
        (steps, before) = (all(total), total)
        steps += repeatElement(Total(), count: min(passed, most))
        steps.removeFirst(max(0, steps.count - most - 1))
    }

    /// The full steps and the one under way.
    func all(_ total: Total) -> [Total] {
        var steps = steps
        steps.append(steps.removeLast() + total.since(before))
        return steps
    }
}

/// Steps of time of one width, by a clock that is never set: changes of the wall clock have no effect.
struct Steps: Sendable {
    /// The length of a step, and the most that are stored.
    let width: Width
    /// When the step under way ends, in nanoseconds.
    private(set) var next: UInt64
    /// Steps that are over and whose totals have not come yet.
    private(set) var passed = 0

    struct Width: Sendable, Equatable {
        let seconds: UInt64
        let most: Int

        static let minute = Width(seconds: 60, most: 60)
        /// 24 hours.
        static let fiveMinutes = Width(seconds: 300, most: 288)
        /// 30 days.
        static let hour = Width(seconds: 3600, most: 720)

        var nanoseconds: UInt64 { seconds * 1_000_000_000 }
    }

    /// - Parameter elapsed: Seconds that the present step has lasted, less than its width.
    init(_ width: Width, at now: UInt64, elapsed: UInt64 = 0) {
        (self.width, next) = (width, now + (width.seconds - elapsed) * 1_000_000_000)
    }

    /// Whether a step is over; true once for each.
    mutating func isOver(at now: UInt64) -> Bool {
        guard now >= next else { return false }
        let steps = (now - next) / width.nanoseconds + 1
        next += steps * width.nanoseconds
        passed = min(passed + Int(min(steps, UInt64(Int32.max))), width.most)
        return true
    }

    /// The number of steps that are over and whose totals come now.
    mutating func take() -> Int { exchange(&passed, with: 0) }

    /// Seconds that the present step has lasted, less than its width.
    func elapsed(at now: UInt64) -> UInt64 {
        let end = now + width.nanoseconds
        return end > next ? min((end - next) / 1_000_000_000, width.seconds - 1) : 0
    }
}
