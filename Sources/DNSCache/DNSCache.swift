public import DNSWire
import Synchronization

/// The answers everybody shares: by name (letters' case aside), type and class IN, in bounded memory.
///
/// Safe to use from any thread: the questions are spread by a keyed hash over segments with a lock each, held for the
/// copy of one answer.
@safe
public final class DNSCache: @unchecked Sendable {
    // Unchecked because of the pointer: it is set once, and what it points to is only touched under its own mutex.
    let segments: UnsafeMutablePointer<Mutex<Segment>>
    /// One for each segment.
    private let maps: [RingMap]
    let hash: NameHash

    /// Segments share the load of all listeners; more would make the smallest cache's rings too short for long answers.
    static let segmentBits: UInt64 = 4
    static let segmentCount = 1 << Int(segmentBits)

    /// - Parameters:
    ///   - bytes: the most it ever takes, index included; at least 1 MiB.
    ///   - staleSeconds: how long past its TTL an answer can still be found (RFC 8767); 0 = not at all.
    ///   - prefetchAt: per cent of its TTL from which a hit says that the entry should be refreshed; 0 = never.
    ///   - seed: secret and random for this process.
    public init(bytes: Int, staleSeconds: UInt32 = 0, prefetchAt: UInt32 = 0, seed: (UInt64, UInt64)) {
        hash = NameHash(keys: seed)
        unsafe segments = .allocate(capacity: Self.segmentCount)
        let share = Self.share(of: bytes)
        var maps: [RingMap] = []
        for index in 0..<Self.segmentCount {
            unsafe (segments + index).initialize(
                to: Mutex(Segment(bytes: share, staleSeconds: staleSeconds, prefetchAt: prefetchAt)))
            maps.append(unsafe segments[index].withLock { $0.ring.map })
        }
        self.maps = maps
    }

    /// What one segment's ring may take.
    static func share(of bytes: Int) -> Int {
        max(bytes, 1 << 20) / segmentCount - MemoryLayout<Mutex<Segment>>.stride
    }

    deinit {
        unsafe segments.deinitialize(count: Self.segmentCount)
        unsafe segments.deallocate()
    }

    /// What the hit path found.
    public enum Lookup: Equatable, Sendable {
        case miss
        /// The reply was written, so many octets.
        case hit(length: Int)
        /// The same, and this entry is due for a refresh; said once for each entry.
        case hitDueForRefresh(length: Int)
    }

    /// Where the answer to a question is to be looked for.
    public struct Key: Sendable {
        fileprivate let hash: UInt64
    }

    /// The key of a question. What ``prefetch(_:)`` needs is on its way from memory then, and not waited for.
    ///
    /// Two cache misses are nearly all that a hit costs here. Who has many questions gets the keys of all, prefetches them
    /// all, and then asks for the answers: so they wait for memory together.
    /// - Parameter query: the client's message, at least up to the question's end.
    public func key(_ question: Question, query: Span<UInt8>) -> Key {
        let hash = hash(query, name: Question.nameOffset..<question.nameEnd, type: question.type.rawValue)
        maps[Self.segment(hash)].prefetchBucket(of: hash)
        return Key(hash: hash)
    }

    /// What ``answer(_:at:query:now:limit:into:)`` needs is on its way from memory now.
    public func prefetch(_ key: Key) {
        maps[Self.segment(key.hash)].prefetchEntry(of: key.hash)
    }

    /// Writes the reply to a question if its answer is fresh. Allocates nothing.
    /// - Parameters:
    ///   - key: this question's.
    ///   - query: the client's message, at least up to the question's end.
    ///   - now: `Tick.seconds`.
    ///   - limit: the octets the client takes, at least 512; `reply` holds as many.
    public func answer(
        _ question: Question, _ key: Key, query: Span<UInt8>, at now: UInt32, limit: Int,
        into reply: inout MutableSpan<UInt8>
    ) -> Lookup {
        unsafe segments[Self.segment(key.hash)].withLock { segment in
            segment.answer(hash: key.hash, question, query: query, at: now, limit: limit, into: &reply)
        }
    }

    /// An answer taken out whole, for whoever decides rather than answers at once.
    public struct Found: Sendable, Equatable {
        public var answer: Answer
        /// Seconds since it was stored.
        public var elapsed: UInt32
        /// False: past its TTL, to be given only as RFC 8767 allows.
        public var isFresh: Bool
    }

    /// The answer to a question for a client of `audience`, fresh or within `staleSeconds` of having been so.
    public func find(_ name: Name, type: RecordType, for audience: Audience, at now: UInt32) -> Found? {
        let hash = hash(name.wire.span, name: 0..<name.wire.count, type: type.rawValue)
        return unsafe segments[Self.segment(hash)].withLock { segment in
            segment.find(hash: hash, name, type: type, audience: Entry.Flags(audience), at: now)
        }
    }

    /// Keeps an answer, in the place of what was known for the same question and audience. `keep` 0 is not kept.
    ///
    /// - Parameter isStandIn: The answer only stands in for one that is not to be had now, and is less sure than that: it
    ///   is forgotten when its TTL ends, is in no snapshot, and takes no place from an answer for everyone that can still
    ///   be given, if only as RFC 8767 allows.
    public func store(
        _ answer: Answer, to name: Name, type: RecordType, for audience: Audience, at now: UInt32,
        isStandIn: Bool = false
    ) {
        let hash = hash(name.wire.span, name: 0..<name.wire.count, type: type.rawValue)
        unsafe segments[Self.segment(hash)].withLock { segment in
            segment.store(
                answer, hash: hash, name, type: type, audience: audience, at: now, isStandIn: isStandIn)
        }
    }

    /// Forgets what is known of a name, all types. Walks the cache: for an operator's word, not for a query's path.
    /// - Returns: how many answers were forgotten.
    @discardableResult
    public func remove(_ name: Name) -> Int {
        var removed = 0
        for index in 0..<Self.segmentCount {
            removed += unsafe segments[index].withLock { $0.remove(name) }
        }
        return removed
    }

    public func removeAll() {
        for index in 0..<Self.segmentCount { unsafe segments[index].withLock { $0.removeAll() } }
    }

    /// Forgets the answers that `isOutdated`. Walks the cache, for settings that have changed.
    /// - Parameter isOutdated: given the question and whom the answer is for; must not use the cache.
    public func removeAll(where isOutdated: @Sendable (Name, RecordType, Audience) -> Bool) {
        for index in 0..<Self.segmentCount { unsafe segments[index].withLock { $0.removeAll(where: isOutdated) } }
    }

    /// Holds from now on, for what is known already as well.
    public func apply(staleSeconds: UInt32, prefetchAt: UInt32) {
        for index in 0..<Self.segmentCount {
            unsafe segments[index].withLock { $0.apply(staleSeconds: staleSeconds, prefetchAt: prefetchAt) }
        }
    }

    public struct Statistics: Sendable, Equatable {
        public var entries = 0
        /// Octets the live entries take.
        public var bytes = 0
        public var hits: UInt64 = 0
        public var misses: UInt64 = 0
        public var evictions: UInt64 = 0
    }

    public var statistics: Statistics {
        var sum = Statistics()
        for index in 0..<Self.segmentCount { unsafe segments[index].withLock { $0.add(to: &sum) } }
        return sum
    }

    static func segment(_ hash: UInt64) -> Int { Int(hash >> (64 - segmentBits)) }
}
