import Forwarding
import Synchronization
import Transport

/// Counts the questions that the listeners have submitted to the forwarder's loop and that have not begun, some 250
/// octets each: the listeners together are faster than the one loop. No source may fill the queue, so a flood from one
/// source is refused while other sources' questions are accepted.
///
/// Sources, and the networks on links, are distinguished by a secretly keyed hash with 256 values; sources with the
/// same value share one limit. Datagrams that the kernel drops from a full socket are dropped regardless of their
/// source.
final class MissQueue: Sendable {
    private let maximum: Int
    private let all = Atomic(0)
    private let sources = Buckets { _ in Atomic(0) }
    private let networks = Buckets { _ in Atomic(0) }
    private let salt: (UInt64, UInt64)

    private typealias Buckets = InlineArray<256, Atomic<Int>>

    /// - Parameter maximum: The most questions that wait. A source with its share of these gets SERVFAIL for further
    ///   questions.
    /// - Parameter salt: The key of the hash; nil for a secret key.
    init(maximum: Int = Shares.submitted, salt: (UInt64, UInt64)? = nil) {
        self.maximum = maximum
        var random = Random()
        self.salt = salt ?? (random.uint64(), random.uint64())
    }

    /// Whether more questions wait than when a few programs ask at once: the loop is behind. From any thread.
    var isLong: Bool { all.load(ordering: .relaxed) >= 4 }

    /// Whether a question of this source may wait, or the refresh of an entry whose client was answered. If true, call
    /// ``leave(_:)`` later. From any thread.
    func enter(_ source: Source) -> Bool {
        if count(source, 1) { return true }
        leave(source)
        return false
    }

    func leave(_ source: Source) { _ = count(source, -1) }

    /// - Returns: Whether there was room for one more question, of the source and of its network.
    private func count(_ source: Source, _ change: Int) -> Bool {
        let all = all.add(change, ordering: .relaxed).oldValue
        func count(_ index: Int, of buckets: borrowing Buckets) -> Bool {
            let own = buckets[index].add(change, ordering: .relaxed).oldValue
            return Shares.mayHaveMore(own: own, all: all, most: maximum)
        }
        let hasRoom = count(source.index(below: sources.count, salt: salt), of: sources)
        guard let index = source.networkIndex(below: networks.count, salt: salt) else { return hasRoom }
        return count(index, of: networks) && hasRoom
    }
}
