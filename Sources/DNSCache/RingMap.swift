import CMemory
import Synchronization

/// The address of a ring's memory, which never changes: enough to prefetch an entry before the lock is taken.
///
/// Sound without the lock for as long as the ring lives: a bucket is read atomically, and the memory of an entry is
/// prefetched but not read; if another entry is there meanwhile, the prefetch was only useless.
@safe
struct RingMap: @unchecked Sendable {
    let memory: UnsafeMutableRawPointer
    let buckets: UnsafeMutablePointer<Atomic<UInt32>>
    let bucketMask: Int

    func prefetchBucket(of hash: UInt64) {
        unsafe cmemory_prefetch(buckets + Int(Ring.tag(hash)) & bucketMask)
    }

    /// Prefetches the first entry of the bucket, nearly always the right one: there are no more entries than buckets.
    func prefetchEntry(of hash: UInt64) {
        let reference = unsafe buckets[Int(Ring.tag(hash)) & bucketMask].load(ordering: .relaxed)
        guard reference != 0 else { return }
        let entry = unsafe memory + Ring.place(reference)
        unsafe cmemory_prefetch(entry)
        unsafe cmemory_prefetch(entry + RingMap.cacheLine)
    }

    /// Octets of a cache line; an entry with its body usually takes two lines.
    static let cacheLine = 64
}
