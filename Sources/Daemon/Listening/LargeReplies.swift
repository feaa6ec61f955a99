import Base
import DNSWire
import Forwarding
import Synchronization
import Transport

/// Counts the long replies to unproven sources: sent to a forged address, they would amplify the question. Beyond a
/// limit the client is asked to repeat over TCP, which proves its address. Shared by all listeners and the loop.
///
/// Sources are distinguished by a secretly keyed hash with 1024 values; sources with the same value share one limit.
final class LargeReplies: Sendable {
    /// The longest reply that is not counted, in octets: the size that each client accepts.
    static let longestFree = Reply.minimumUDPSize

    /// By source: a second in the upper 32 bits, and the number of replies in that second in the lower 32.
    private let buckets = InlineArray<1024, Atomic<UInt64>> { _ in Atomic(0) }
    private let salt: (UInt64, UInt64)

    init() {
        var random = Random()
        salt = (random.uint64(), random.uint64())
    }

    /// Counts one more reply to a source. May be called from any thread.
    /// - Returns: false if the source has reached its limit in this second.
    func add(_ source: Source, at now: Tick) -> Bool {
        let bucket = source.index(below: buckets.count, salt: salt)
        let second = UInt64(now.seconds) << 32
        let before = buckets[bucket].load(ordering: .relaxed)
        guard before & ~0xFFFF_FFFF == second else {
            // If two threads come here at once, one of the two replies is not counted.
            buckets[bucket].store(second | 1, ordering: .relaxed)
            return true
        }
        guard before & 0xFFFF_FFFF < Shares.longReplies else { return false }
        buckets[bucket].add(1, ordering: .relaxed)
        return true
    }
}
