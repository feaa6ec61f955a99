/// Combines requests for one value. All callers that ask during a fetch get the same result, and a fetch begins at most
/// every 50 ms, because the queues that provide the value have other work. Confined to its owner's loop.
final class Coalescer<Value: Sendable> {
    /// Begins to fetch the value; the owner then calls ``arrived(_:in:)`` with the same round.
    var begin: (_ round: UInt64) -> Void = { _ in }
    private var waiting: [(Value?) -> Void] = []
    private var round: UInt64 = 0
    private var isUnderWay = false
    /// When the last fetch began, in nanoseconds.
    private var begun: UInt64 = 0

    /// The least time between the starts of two fetches, in nanoseconds.
    private static var interval: UInt64 { 50_000_000 }
    /// How long a fetch may take, in nanoseconds. After this time the callers get nil.
    private static var patience: UInt64 { 2_000_000_000 }

    /// - Parameter waiter: Called once, later; with nil if the value did not arrive in time.
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
        for waiter in exchange(&waiting, with: []) { waiter(value) }
    }
}
