import Base
import DNSWire
import Forwarding
import Synchronization
import Transport

/// Counts the long replies that go to sources which are not proven: sent to a forged address, they would be more octets
/// than were asked with. Past a limit the client is told to ask over TCP, which proves its address. Shared by all
/// listeners and the loop.
///
/// Sources are told apart by a secretly keyed hash with 1024 values; sources with the same value share one limit.
final class LargeReplies: Sendable {
    /// The longest reply that is not counted, in octets: what every client takes.
    static let longestFree = Reply.minimumUDPSize

    /// The second in the upper half, and in the lower how many went out in it.
    private let buckets = InlineArray<1024, Atomic<UInt64>> { _ in Atomic(0) }
    private let salt: (UInt64, UInt64)

    init() {
        var random = Random()
        salt = (random.uint64(), random.uint64())
    }

    /// Counts one more for a source. From any thread.
    /// - Returns: false if it has had as many in this second as it may.
    func add(_ source: Source, at now: Tick) -> Bool {
        let bucket = source.place(of: buckets.count, salt: salt)
        let second = UInt64(now.seconds) << 32
        let before = buckets[bucket].load(ordering: .relaxed)
        guard before & ~0xFFFF_FFFF == second else {
            // Of two threads that come here at once, one is not counted.
            buckets[bucket].store(second | 1, ordering: .relaxed)
            return true
        }
        guard before & 0xFFFF_FFFF < Shares.longReplies else { return false }
        buckets[bucket].add(1, ordering: .relaxed)
        return true
    }
}
