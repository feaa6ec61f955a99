import Forwarding
import Synchronization
import Transport

/// How many questions the listeners have handed to the resolver that it has not taken on yet, some 250 octets each:
/// listeners are faster than one resolver. No source may fill the queue, so that what one sends without end is refused
/// while others' questions are taken on.
///
/// Sources are told apart by a hash that nobody outside can compute: of those that meet in one place, one in 256, each
/// has the others' part too. What the kernel drops from a full socket before it is read is dropped whoever sent it.
final class MissQueue: Sendable {
    /// Questions that wait at most; past its part of them a source's newest is refused with SERVFAIL: see
    /// ``Source/mayHaveMore(own:all:most:)``.
    static let usualMaximum = 1024

    private let maximum: Int
    private let all = Atomic(0)
    private let places = InlineArray<256, Atomic<Int>> { _ in Atomic(0) }
    private let turnedAway = Atomic<UInt64>(0)
    private let salt: UInt64

    init(maximum: Int = usualMaximum) {
        self.maximum = maximum
        var random = Random()
        salt = random.uint64()
    }

    /// Questions refused since the start.
    var refused: UInt64 { turnedAway.load(ordering: .relaxed) }

    /// A question of a source is to wait: whether it may. If so, ``leave(_:)`` has to follow. From any thread.
    func enter(_ source: Source) -> Bool {
        if enterToRefresh(source) { return true }
        turnedAway.add(1, ordering: .relaxed)
        return false
    }

    /// The same for what has its answer and is only to be refreshed; without room it is looked up when its time is
    /// over, and nobody was refused.
    func enterToRefresh(_ source: Source) -> Bool {
        let counted = count(source, 1)
        if Source.mayHaveMore(own: counted.own, all: counted.all, most: maximum) { return true }
        leave(source)
        return false
    }

    func leave(_ source: Source) { _ = count(source, -1) }

    /// - Returns: how many there were before, of the source and of all.
    private func count(_ source: Source, _ change: Int) -> (own: Int, all: Int) {
        let place = source.place(of: places.count, salt: salt)
        return (
            places[place].add(change, ordering: .relaxed).oldValue, all.add(change, ordering: .relaxed).oldValue
        )
    }
}
