public import DNSWire
import Synchronization

/// The answers that all clients share: by name (in any case of letters), type and class IN, in bounded memory.
///
/// Safe to use from any thread: a keyed hash spreads the questions over segments, each with its own lock, which is held
/// for the copy of one answer.
@safe
public final class DNSCache: @unchecked Sendable {
    // Unchecked because of the pointer, which is set once and whose target is used only under its own mutex.
    //
    // Listeners that ask for names of neighbouring segments must not write the same cache line, so each segment has
    // lines of its own.
    let segments: UnsafeMutablePointer<Mutex<Segment>>
    /// One map for each segment.
    let maps: [RingMap]
    let hash: NameHash
    /// The names whose answers were removed by ``remove(_:)``.
    let forgotten = Mutex<[NameScope]>([])

    /// Enough segments that listeners rarely meet in one; with more segments, the rings of the smallest cache would be
    /// too short for long answers.
    static let segmentBits: UInt64 = 4
    static let segmentCount = 1 << Int(segmentBits)

    /// - Parameters:
    ///   - bytes: The most memory of the cache, index included; at least 1 MiB.
    ///   - staleSeconds: How long after its expiry an answer can still be found (RFC 8767); 0 if it cannot.
    ///   - prefetchAt: The per cent of its TTL from which a hit reports an entry as due for a refresh; 0 for never.
    ///   - seed: Two numbers, secret and random for this process.
    public init(bytes: Int, staleSeconds: UInt32 = 0, prefetchAt: UInt32 = 0, seed: (UInt64, UInt64)) {
        hash = NameHash(keys: seed)
        unsafe segments = UnsafeMutableRawPointer.allocate(
            byteCount: Self.segmentCount * MemoryLayout<Mutex<Segment>>.stride, alignment: RingMap.cacheLine
        ).bindMemory(to: Mutex<Segment>.self, capacity: Self.segmentCount)
        let share = Self.share(of: bytes)
        var maps: [RingMap] = []
        for index in 0..<Self.segmentCount {
            unsafe (segments + index).initialize(
                to: Mutex(Segment(bytes: share, staleSeconds: staleSeconds, prefetchAt: prefetchAt)))
            maps.append(unsafe segments[index].withLock { $0.ring.map })
        }
        self.maps = maps
    }

    /// The octets for one segment's ring.
    static func share(of bytes: Int) -> Int {
        max(bytes, 1 << 20) / segmentCount - MemoryLayout<Mutex<Segment>>.stride
    }

    deinit {
        unsafe segments.deinitialize(count: Self.segmentCount)
        unsafe segments.deallocate()
    }

    /// Computes the basis of each answer in the present epoch.
    final class Rules: Sendable {
        let basis: @Sendable (Name, RecordType, Audience) -> Basis

        init(_ basis: @escaping @Sendable (Name, RecordType, Audience) -> Basis) { self.basis = basis }
    }

    /// The result of a read of the cache on the path of a hit.
    public enum Lookup: Equatable, Sendable {
        case miss
        /// The reply was written, with this many octets.
        case hit(length: Int)
        /// The reply was written, and the entry is due for a refresh, which only one hit reports.
        case hitDueForRefresh(length: Int)
    }

    /// The hash of a question, which locates its answer.
    public struct Key: Sendable {
        fileprivate let hash: UInt64
    }

    /// The key of a question. The call starts to fetch the memory that ``prefetch(_:)`` will read, without a wait.
    ///
    /// Two cache misses are nearly the whole cost of a hit. A listener with several questions therefore makes all their
    /// keys, prefetches them all, and only then asks for the answers, so that the waits overlap.
    /// - Parameter query: The client's message, at least up to the question's end.
    public func key(_ question: Question, query: Span<UInt8>) -> Key {
        let hash = hash(query, name: Question.nameOffset..<question.nameEnd, type: question.type.rawValue)
        maps[Self.segment(hash)].prefetchBucket(of: hash)
        return Key(hash: hash)
    }

    /// Starts to fetch the memory that ``answer(_:_:query:at:limit:into:)`` will read.
    public func prefetch(_ key: Key) { maps[Self.segment(key.hash)].prefetchEntry(of: key.hash) }

    /// Writes the reply to a question if its answer is fresh. The call allocates nothing.
    /// - Parameters:
    ///   - key: The key of this question.
    ///   - query: The client's message, at least up to the question's end.
    ///   - now: `Tick.seconds`.
    ///   - limit: The most octets that the client takes, at least 512; `reply` has as many.
    public func answer(
        _ question: Question, _ key: Key, query: Span<UInt8>, at now: UInt32, limit: Int,
        into reply: inout MutableSpan<UInt8>
    ) -> Lookup {
        unsafe segments[Self.segment(key.hash)].withLock { segment in
            segment.answer(hash: key.hash, question, query: query, at: now, limit: limit, into: &reply)
        }
    }

    /// The answer to a question for a client of `audience`, fresh or at most `staleSeconds` past its TTL: the answer
    /// stored for this audience, or an answer got with DO, without its signatures. No state changes.
    /// - Parameter isAnyAge: Whether an answer that has expired longer ago is meant, too.
    public func find(
        _ name: Name, type: RecordType, for audience: Audience, at now: UInt32, isAnyAge: Bool = false
    ) -> Held? {
        withSegment(of: name, type) {
            $0.held(hash: $1, name, type: type, audience: audience, at: now, isAnyAge: isAnyAge)
        }
    }

    /// The result of ``find(_:type:for:at:)``, for a client that gets it if it is fresh: the answer counts as asked
    /// for, and may be due for a refresh. An answer that was got with DO is stored for these clients from then on, so
    /// that ``answer(_:_:query:at:limit:into:)`` finds it.
    public func take(_ name: Name, type: RecordType, for audience: Audience, at now: UInt32) -> Held? {
        withSegment(of: name, type) { $0.take(hash: $1, name, type: type, audience: audience, at: now) }
    }

    /// Calls the closure with the segment of a question, locked, and the question's hash.
    private func withSegment<Result: Sendable>(
        of name: Name, _ type: RecordType, _ body: (inout Segment, UInt64) -> Result
    ) -> Result {
        let hash = hash(name.wire.span, name: 0..<name.wire.count, type: type.rawValue)
        return unsafe segments[Self.segment(hash)].withLock { body(&$0, hash) }
    }

    /// Stores an answer and replaces the answers to the same question that serve no other clients. An answer with
    /// `keep` 0 is not stored, nor an answer got with CD while a fresh answer serves the same clients.
    ///
    /// - Parameter isStandIn: Whether the answer is a substitute for a better one that cannot be had now. A substitute
    ///   is removed when its TTL ends, is in no snapshot, and replaces neither a fresh answer that is no substitute nor
    ///   an answer for all clients that may still be given stale (RFC 8767).
    /// - Parameter origin: The source of the answer, by a number that the caller chose and that
    ///   ``find(_:type:for:at:)`` returns; 0 for no source.
    /// - Parameter basis: The basis by the present rules; nil if the rules are to be asked for it.
    public func store(
        _ answer: Answer, to name: Name, type: RecordType, for audience: Audience, at now: UInt32,
        isStandIn: Bool = false, origin: UInt16 = 0, basis: Basis? = nil
    ) {
        withSegment(of: name, type) { segment, hash in
            segment.store(
                answer, hash: hash, name, type: type, audience: audience, at: now, isStandIn: isStandIn, origin: origin,
                basis: basis)
        }
    }

    /// Replaces the body of a stored answer; its age and all else stay. The call has no effect if another answer was
    /// stored meanwhile, or if the new body has another length or question.
    public func replaceBody(
        of answer: Answer, by body: [UInt8], to name: Name, type: RecordType, for audience: Audience
    ) {
        let question = name.wire.count + 4
        guard body.count >= question, body[..<question] == answer.body[..<question] else { return }
        withSegment(of: name, type) { segment, hash in
            segment.replaceBody(
                answer.body, by: body, hash: hash, name, type: type, clients: Entry.Flags(asking: audience))
        }
    }

    /// A copy of an answer with its state, for the forwarder, which decides whether to use it, and for an operator's
    /// inspection.
    public struct Held: Sendable, Equatable {
        /// The answer as it was stored.
        public var answer: Answer
        /// Seconds since the answer was stored.
        public var elapsed: UInt32
        /// The clients that the answer serves unchanged.
        public var audience: Audience
        /// Whether the answer was stored with signatures, for other clients.
        public var isLent = false
        /// Whether the reader of the answer is to refresh it: see ``DNSCache/take(_:type:for:at:)``.
        public var isDue = false
        /// See ``store(_:to:type:for:at:isStandIn:origin:basis:)``.
        public var isStandIn: Bool
        /// The origin passed to `store`; 0 also for an answer that was restored from a file.
        public var origin: UInt16

        /// An answer of this cache, or of another.
        public init(answer: Answer, elapsed: UInt32, audience: Audience, isStandIn: Bool = false, origin: UInt16 = 0) {
            (self.answer, self.elapsed, self.audience) = (answer, elapsed, audience)
            (self.isStandIn, self.origin) = (isStandIn, origin)
        }

        /// Whether the answer is fresh; an expired answer may be given only stale (RFC 8767).
        public var isFresh: Bool { elapsed < answer.keep }
        /// The remaining seconds for which the answer is fresh.
        public var left: UInt32 { isFresh ? answer.keep - elapsed : 0 }
    }

    /// The types of the answers for a name; walks the whole cache.
    public func types(of name: Name) -> Set<RecordType> {
        var types: Set<RecordType> = []
        for index in 0..<Self.segmentCount { unsafe types.formUnion(segments[index].withLock { $0.types(of: name) }) }
        return types
    }

    /// Removes the answers to all questions for some names, also those of a snapshot that is being restored, or will
    /// be; walks the whole cache.
    /// - Returns: The number of removed answers.
    @discardableResult
    public func remove(_ scope: NameScope) -> Int {
        // This comes first, so that a restored answer is either left out, or found by the walk.
        forgotten.withLock { scopes in
            scopes.append(scope)
            if scopes.count > Self.mostForgotten { scopes = [.all] }
        }
        var count = 0
        for index in 0..<Self.segmentCount { unsafe count += segments[index].withLock { $0.removeAll(in: scope) } }
        return count
    }

    /// Beyond this number of scopes, all names count as forgotten, for a snapshot that is restored later.
    private static let mostForgotten = 64

    /// Removes the answers to a question that are substitutes for a better answer, for all audiences: see
    /// ``store(_:to:type:for:at:isStandIn:origin:basis:)``.
    public func removeStandIn(_ name: Name, type: RecordType) {
        withSegment(of: name, type) { $0.removeStandIn(hash: $1, name, type: type) }
    }

    /// Changes the rules that decide which answers are right: a new epoch begins.
    ///
    /// The cache is not walked. An answer that was stored or found right in an earlier epoch is compared at its next
    /// use: if its basis is still the basis by the rules, it belongs to the new epoch; else it is removed.
    /// - Parameter basis: Returns the basis of an answer for an audience by these rules. It is called on any thread,
    ///   with a segment locked, and must not use the cache.
    public func obey(_ basis: @escaping @Sendable (Name, RecordType, Audience) -> Basis) {
        let rules = Rules(basis)
        for index in 0..<Self.segmentCount { unsafe segments[index].withLock { $0.obey(rules) } }
    }

    /// Applies new settings, also to the stored answers.
    public func apply(staleSeconds: UInt32, prefetchAt: UInt32) {
        for index in 0..<Self.segmentCount {
            unsafe segments[index].withLock { $0.apply(staleSeconds: staleSeconds, prefetchAt: prefetchAt) }
        }
    }

    /// The contents of the cache, and its counts since it was made.
    public struct Statistics: Sendable, Equatable {
        /// Stored answers, expired answers included.
        public var entries = 0
        /// Octets of the live entries.
        public var bytes = 0
        /// Questions of clients that the cache answered.
        public var hits: UInt64 = 0
        /// Questions of clients without a fresh answer.
        public var misses: UInt64 = 0
        /// Answers that were evicted.
        public var evictions: UInt64 = 0
    }

    /// The sums over all segments, which are read one after the other.
    public var statistics: Statistics {
        var sum = Statistics()
        for index in 0..<Self.segmentCount { unsafe segments[index].withLock { $0.add(to: &sum) } }
        return sum
    }

    static func segment(_ hash: UInt64) -> Int { Int(hash >> (64 - segmentBits)) }
}
