/// What many may ask for at once and is fetched for all of them together, and not more often than is good: however fast
/// somebody asks, the queues that know it have other work. Confined to its owner's loop.
final class Coalescer<Value: Sendable> {
    /// Begins to fetch it; ``arrived(_:in:)`` is to be told the round.
    var begin: (_ round: UInt64) -> Void = { _ in }
    private var waiting: [(Value?) -> Void] = []
    private var round: UInt64 = 0
    private var isUnderWay = false
    /// When it began last, in nanoseconds.
    private var begun: UInt64 = 0

    /// From one to the next at least.
    private static var interval: UInt64 { 50_000_000 }
    /// How long it may take; then those who wait are told that nothing came.
    private static var patience: UInt64 { 2_000_000_000 }

    /// - Parameter waiter: called once, later; nil: nothing came.
    func ask(at now: UInt64, _ waiter: @escaping (Value?) -> Void) {
        waiting.append(waiter)
        expire(at: now)
    }

    func arrived(_ value: Value, in round: UInt64) {
        if isUnderWay, round == self.round { end(value) }
    }

    var nextDeadline: UInt64? {
        guard !waiting.isEmpty else { return nil }
        return begun + (isUnderWay ? Self.patience : Self.interval)
    }

    func expire(at now: UInt64) {
        guard let nextDeadline, begun == 0 || nextDeadline <= now else { return }
        if isUnderWay { return end(nil) }
        (begun, isUnderWay) = (now, true)
        round += 1
        begin(round)
    }

    private func end(_ value: Value?) {
        isUnderWay = false
        let those = waiting
        waiting = []
        for waiter in those { waiter(value) }
    }
}
