import CMemory
import DNSWire
import Synchronization

/// One segment's memory: entries are appended to a ring and found through chained buckets.
///
/// Invariant: the live bytes are the positions `tail ..< head` (which only grow; the offset in memory is the position
/// modulo `capacity`), they are whole records, no record straddles the end of the memory, and an entry is in its
/// bucket's chain exactly while it is live. So eviction removes the record at `tail`: constant time, no fragmentation,
/// and the memory used is the memory given.
@safe
struct Ring: ~Copyable {
    private let memory: UnsafeMutableRawPointer
    // Buckets are atomic only for ``RingMap``, which reads without the lock; other code holds the segment's lock.
    private let buckets: UnsafeMutablePointer<Atomic<UInt32>>
    let bucketMask: Int
    let capacity: Int
    private var head = 0
    private var tail = 0
    private(set) var liveEntries = 0
    private(set) var liveBytes = 0
    private(set) var evictions: UInt64 = 0
    /// Octets of the long records from `tail` to `head`, live or not.
    private var longBytes = 0

    /// The most entries that one `append` spares because they were asked for again. This bounds the work of a store
    /// when all entries are hot (some microseconds); a flood of names asked once evicts one of so many neighbouring hot
    /// entries. It also bounds how many short entries are moved to make room for long ones.
    static let maximumSpared = 256

    /// A record of more octets is long. A usual answer has some hundred; the owner of a zone can make answers of 60 KB
    /// for any number of names, and would flush the cache with a few of them.
    static let longestShort = 4096

    /// - Parameter bytes: The memory for index and ring together.
    init(bytes: Int) {
        var count = 64
        while count * 2 * 96 <= bytes { count *= 2 }
        bucketMask = count - 1
        capacity = (bytes - count * MemoryLayout<UInt32>.stride) & ~(Entry.alignment - 1)
        // One piece of memory for both, freed only in deinit; each access below stays under `capacity` and
        // `bucketMask`. Four octets of 0 are an atomic 0.
        guard let all = unsafe cmemory_map(count * MemoryLayout<UInt32>.stride + capacity) else {
            // As with Swift's own allocation, the process cannot continue.
            fatalError("no memory for the cache")
        }
        unsafe buckets = all.bindMemory(to: Atomic<UInt32>.self, capacity: count)
        unsafe memory = all + count * MemoryLayout<UInt32>.stride
    }

    var map: RingMap { unsafe RingMap(memory: memory, buckets: buckets, bucketMask: bucketMask) }

    private func first(inBucket bucket: Int) -> UInt32 { unsafe buckets[bucket].load(ordering: .relaxed) }

    private func setFirst(_ reference: UInt32, inBucket bucket: Int) {
        unsafe buckets[bucket].store(reference, ordering: .relaxed)
    }

    deinit { unsafe cmemory_unmap(buckets, (bucketMask + 1) * MemoryLayout<UInt32>.stride + capacity) }

    /// The most octets of all long records together in the ring. Long records evict one another within this share, and
    /// no short record.
    private var longShare: Int { capacity / 8 }

    /// The largest record that is stored: at most a quarter even of a small ring, so that one answer never empties the
    /// ring.
    var largestRecord: Int { min(capacity / 4, max(Ring.longestShort, longShare)) }

    // MARK: Finding

    /// The offset of the newest live entry for a question that serves these clients, if there is one.
    func offset(
        hash: UInt64, _ bytes: Span<UInt8>, name: Range<Int>, type: UInt16, serving clients: Entry.Flags
    ) -> Int? {
        offset(hash: hash, bytes, name: name, type: type) { $0.serves(clients) }
    }

    /// The offset of the newest live entry for a question that fulfils a condition.
    @inline(__always)
    func offset(
        hash: UInt64, _ bytes: Span<UInt8>, name: Range<Int>, type: UInt16, where fulfils: (Entry) -> Bool
    ) -> Int? {
        var reference = first(inBucket: bucket(of: hash))
        while reference != 0 {
            let at = Ring.offset(reference)
            let entry = entry(at: at)
            if entry.hash == Ring.tag(hash), Int(entry.nameLength) == name.count, fulfils(entry),
                asks(at: at, entry, bytes, name: name, type: type)
            {
                return at
            }
            reference = entry.next
        }
        return nil
    }

    private func asks(at: Int, _ entry: Entry, _ bytes: Span<UInt8>, name: Range<Int>, type: UInt16) -> Bool {
        let body = unsafe body(at: at, length: Int(entry.bodyLength)).span
        let end = Int(entry.nameLength)
        guard body.count >= end &+ 4 else { return false }
        let stored = UInt16(body[end]) << 8 | UInt16(body[end &+ 1])
        return stored == type && sameName(body, at: 0, as: bytes, name: name)
    }

    func entry(at offset: Int) -> Entry { unsafe memory.load(fromByteOffset: offset, as: Entry.self) }

    func update(at offset: Int, _ entry: Entry) {
        unsafe memory.storeBytes(of: entry, toByteOffset: offset, as: Entry.self)
    }

    /// The octets of an entry's body. They are valid until the next `append`, so the caller must not store the pointer.
    func body(at offset: Int, length: Int) -> UnsafeBufferPointer<UInt8> {
        let start = unsafe (memory + offset + Entry.size).assumingMemoryBound(to: UInt8.self)
        return unsafe UnsafeBufferPointer(start: start, count: length)
    }

    // MARK: Changing

    /// Writes an entry and makes it findable. The caller has removed the entry that it replaces.
    /// - Returns: false if the entry is not stored, since it is larger than `largestRecord`; or it is long, and too
    ///   many short entries are between the tail and the oldest long entry. These were moved, so that a later attempt
    ///   comes further.
    mutating func append(_ new: Entry, body: Span<UInt8>, hash: UInt64) -> Bool {
        let extent = new.extent
        guard extent <= largestRecord else { return false }
        var spared = 0
        while extent > Ring.longestShort, longBytes + extent > longShare {
            guard spared < Ring.maximumSpared else { return false }
            evictOldest(spared: &spared, sparingShort: true)
        }
        while !hasRoom(for: extent) { evictOldest(spared: &spared) }
        pad(before: extent)
        let offset = head % capacity
        // The ring has `extent` free octets from `offset` on, and the body fits into them after the entry.
        write(body, after: offset)
        link(new, at: offset)
        advanceHead(extent)
        return true
    }

    /// Overwrites the first octets of an entry's body, which must be at least as long as `octets`.
    mutating func overwriteBody(at offset: Int, _ octets: Span<UInt8>) {
        precondition(octets.count <= Int(entry(at: offset).bodyLength))
        write(octets, after: offset)
    }

    /// Writes a body; the caller has checked that it fits.
    private func write(_ octets: Span<UInt8>, after offset: Int) {
        unsafe octets.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            unsafe (memory + offset + Entry.size).copyMemory(from: base, byteCount: bytes.count)
        }
    }

    /// Removes an entry from its chain. The entry's memory is reused when the tail reaches it.
    mutating func remove(at offset: Int) {
        var removed = entry(at: offset)
        let reference = Ring.reference(offset)
        let slot = Int(removed.hash) & bucketMask
        let first = first(inBucket: slot)
        if first == reference {
            setFirst(removed.next, inBucket: slot)
        } else {
            var at = Ring.offset(first)
            var previous = entry(at: at)
            while previous.next != reference {
                at = Ring.offset(previous.next)
                previous = entry(at: at)
            }
            previous.next = removed.next
            update(at: at, previous)
        }
        removed.flags.remove(.live)
        update(at: offset, removed)
        liveEntries -= 1
        liveBytes -= removed.extent
    }

    mutating func removeAll() {
        for bucket in 0...bucketMask { setFirst(0, inBucket: bucket) }
        (tail, liveEntries, liveBytes, longBytes) = (head, 0, 0, 0)
    }

    /// The offset of the next live entry from `position` on, which moves past it; nil if there is none before `end`.
    /// The ring may have changed in between: positions only grow, so a position behind the tail continues at the oldest
    /// entry.
    func nextOffset(_ position: inout Int, before end: Int) -> Int? {
        position = max(position, tail)
        while position < min(end, head) {
            let offset = position % capacity
            guard let entry = record(at: offset) else {
                position += capacity - offset
                continue
            }
            position += entry.extent
            if entry.flags.contains(.live) { return offset }
        }
        return nil
    }

    /// The position of the oldest record, and the end of the newest.
    var start: Int { tail }
    var end: Int { head }

    /// Octets that can be written before an eviction, including the octets that may stay unused at the end of memory.
    var freeBytes: Int { capacity - (head - tail) }

    /// Whether a record of `extent` octets can be appended without an eviction.
    func hasRoom(for extent: Int) -> Bool { head + padding(before: extent) + extent - tail <= capacity }

    /// Moves the tail past the oldest record, which is evicted or, if it is spared, moved to the head.
    private mutating func evictOldest(spared: inout Int, sparingShort: Bool = false) {
        let offset = tail % capacity
        guard let oldest = record(at: offset) else {
            tail += capacity - offset
            return
        }
        let extent = oldest.extent
        let isLong = extent > Ring.longestShort
        tail += extent
        if isLong { longBytes -= extent }
        guard oldest.flags.contains(.live) else { return }
        remove(at: offset)
        let isToBeSpared = oldest.flags.contains(.referenced) || sparingShort && !isLong
        guard isToBeSpared, spared < Ring.maximumSpared, hasRoom(for: extent) else {
            evictions += 1
            return
        }
        spared += 1
        pad(before: extent)
        let target = head % capacity
        // The freed bytes and the target may overlap in a full ring: copyMemory is memmove.
        unsafe (memory + target).copyMemory(from: memory + offset, byteCount: extent)
        var entry = oldest
        entry.flags.remove(.referenced)
        link(entry, at: target)
        advanceHead(extent)
    }

    private mutating func advanceHead(_ extent: Int) {
        head += extent
        if extent > Ring.longestShort { longBytes += extent }
    }

    private mutating func link(_ entry: Entry, at offset: Int) {
        var linked = entry
        let slot = Int(entry.hash) & bucketMask
        linked.next = first(inBucket: slot)
        update(at: offset, linked)
        setFirst(Ring.reference(offset), inBucket: slot)
        liveEntries += 1
        liveBytes += entry.extent
    }

    /// The octets that must stay unused at the end of memory so that a record of `extent` octets does not straddle it.
    private func padding(before extent: Int) -> Int {
        let offset = head % capacity
        return offset + extent > capacity ? capacity - offset : 0
    }

    private mutating func pad(before extent: Int) {
        let length = padding(before: extent)
        if length >= Entry.size {
            update(at: head % capacity, Entry())
        }
        head += length
    }

    /// The record at an offset; nil if the rest of the memory is unused.
    private func record(at offset: Int) -> Entry? {
        guard offset + Entry.size <= capacity else { return nil }
        let entry = entry(at: offset)
        return entry.isPadding ? nil : entry
    }

    // MARK: Numbers

    static func tag(_ hash: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: hash) }
    private func bucket(of hash: UInt64) -> Int { Int(Ring.tag(hash)) & bucketMask }
    private static func reference(_ offset: Int) -> UInt32 { UInt32(offset / Entry.alignment + 1) }
    static func offset(_ reference: UInt32) -> Int { (Int(reference) - 1) * Entry.alignment }
}

/// The address of a ring's memory, which never changes, so that an entry can be prefetched before the lock is taken.
///
/// The map is sound without the lock for as long as the ring lives: a bucket is read atomically, and the memory of an
/// entry is prefetched but not read; if another entry is there meanwhile, the prefetch was only useless.
@safe
struct RingMap: @unchecked Sendable {
    let memory: UnsafeMutableRawPointer
    let buckets: UnsafeMutablePointer<Atomic<UInt32>>
    let bucketMask: Int

    func prefetchBucket(of hash: UInt64) {
        unsafe cmemory_prefetch(buckets + Int(Ring.tag(hash)) & bucketMask)
    }

    /// Prefetches the first entry of the bucket, nearly always the right entry: there are no more entries than buckets.
    func prefetchEntry(of hash: UInt64) {
        let reference = unsafe buckets[Int(Ring.tag(hash)) & bucketMask].load(ordering: .relaxed)
        guard reference != 0 else { return }
        let entry = unsafe memory + Ring.offset(reference)
        unsafe cmemory_prefetch(entry)
        unsafe cmemory_prefetch(entry + RingMap.cacheLine)
    }

    /// Octets of a cache line; an entry with its body usually takes two lines.
    static let cacheLine = 64
}
