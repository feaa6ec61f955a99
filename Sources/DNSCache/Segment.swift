import DNSWire

/// One lock's share of the cache: a ring of entries and the rules by which they are found, aged and replaced.
///
/// Its fields stand in such an order that a hit, the lock before them included, reads and writes one cache line
/// (``DNSCache/segments``).
struct Segment: ~Copyable {
    private var hits: UInt64 = 0
    private var misses: UInt64 = 0
    private(set) var staleSeconds: UInt32
    private var prefetchAt: UInt32
    var ring: Ring
    /// Counts what was stored and removed, so that the writer of snapshots can see that the last one is out of date.
    private(set) var changes: UInt64 = 0
    /// With it a segment and its lock fill two cache lines.
    private let padding: UInt64 = 0

    init(bytes: Int, staleSeconds: UInt32, prefetchAt: UInt32) {
        ring = Ring(bytes: bytes)
        self.staleSeconds = staleSeconds
        self.prefetchAt = prefetchAt
    }

    mutating func answer(
        hash: UInt64, _ question: Question, query: Span<UInt8>, at now: UInt32, limit: Int,
        into reply: inout MutableSpan<UInt8>
    ) -> DNSCache.Lookup {
        let name = Question.nameOffset..<question.nameEnd
        var audience: Entry.Flags = []
        if question.dnssecOK { audience.insert(.dnssecOK) }
        if question.checkingDisabled { audience.insert(.checkingDisabled) }
        guard
            let place = ring.place(
                hash: hash, query, name: name, type: question.type.rawValue, audience: audience)
        else {
            misses &+= 1
            return .miss
        }
        var entry = ring.entry(at: place)
        let elapsed = entry.elapsed(at: now)
        guard elapsed < entry.keep else {
            misses &+= 1
            return .miss
        }
        hits &+= 1
        let due = isDue(entry, elapsed) && question.recursionDesired
        if due || !entry.flags.contains(.referenced) {
            entry.flags.insert(.referenced)
            if due { entry.flags.insert(.refreshing) }
            ring.update(at: place, entry)
        }
        // The reply is written before the lock is released, so the reference to the body does not outlive it.
        let body = unsafe ring.body(at: place, length: Int(entry.bodyLength)).span
        let length = Reply.write(
            entry.head, body: body, age: .elapsed(elapsed), to: question, query: query, limit: limit, into: &reply)
        return due ? .hitDueForRefresh(length: length) : .hit(length: length)
    }

    private func isDue(_ entry: Entry, _ elapsed: UInt32) -> Bool {
        prefetchAt > 0 && !entry.flags.contains(.refreshing)
            && UInt64(elapsed) * 100 >= UInt64(entry.keep) * UInt64(prefetchAt)
    }

    func find(
        hash: UInt64, _ name: Name, type: RecordType, audience: Entry.Flags, at now: UInt32
    ) -> DNSCache.Found? {
        guard let place = ring.place(hash: hash, name, type: type, audience: audience) else { return nil }
        let entry = ring.entry(at: place)
        guard isUsable(entry, at: now) else { return nil }
        let elapsed = entry.elapsed(at: now)
        let body = unsafe Array(ring.body(at: place, length: Int(entry.bodyLength)))
        return DNSCache.Found(
            answer: Answer(head: entry.head, body: body, keep: entry.keep, isCacheable: true), elapsed: elapsed,
            isFresh: elapsed < entry.keep)
    }

    func held(
        hash: UInt64, _ name: Name, type: RecordType, audience: Entry.Flags, at now: UInt32
    ) -> DNSCache.Held? {
        guard let place = ring.place(hash: hash, name, type: type, audience: audience),
            let found = find(hash: hash, name, type: type, audience: audience, at: now)
        else { return nil }
        let entry = ring.entry(at: place)
        return DNSCache.Held(
            answer: found.answer, elapsed: found.elapsed, audience: entry.flags.whose, isStandIn: entry.isStandIn,
            teller: entry.teller)
    }

    /// Whether an entry is fresh, or may be given past its TTL (RFC 8767).
    func isUsable(_ entry: Entry, at now: UInt32) -> Bool {
        UInt64(entry.elapsed(at: now)) < UInt64(entry.keep) + (entry.isStandIn ? 0 : UInt64(staleSeconds))
    }

    mutating func store(
        _ answer: Answer, hash: UInt64, _ name: Name, type: RecordType, audience: Audience, at now: UInt32,
        isStandIn: Bool = false, teller: UInt16 = 0
    ) {
        guard answer.keep > 0, answer.body.count <= Int(UInt16.max), answer.body.count >= name.wire.count + 4 else {
            return
        }
        let flags = Entry.Flags(audience)
        if isStandIn, let place = ring.place(hash: hash, name, type: type, audience: flags) {
            let known = ring.entry(at: place)
            if known.flags.contains(.everyone), isUsable(known, at: now) { return }
        }
        changes &+= 1
        while let place = ring.place(hash: hash, name, type: type, audience: Segment.replaced(by: flags)) {
            ring.remove(at: place)
        }
        let entry = Entry(
            answer, nameLength: name.wire.count, audience: audience, isStandIn: isStandIn, teller: teller,
            hash: Ring.tag(hash), now: now)
        _ = ring.append(entry, body: answer.body.span, hash: hash)
    }

    mutating func replaceBody(
        _ old: [UInt8], by new: [UInt8], hash: UInt64, _ name: Name, type: RecordType, audience: Entry.Flags
    ) {
        guard let place = ring.place(hash: hash, name, type: type, audience: audience), old.count == new.count,
            unsafe ring.body(at: place, length: Int(ring.entry(at: place).bodyLength)).elementsEqual(old)
        else { return }
        changes &+= 1
        ring.overwriteBody(at: place, new.span)
    }

    /// The audience whose entries a new one replaces. An answer for everyone replaces all: nil.
    static func replaced(by flags: Entry.Flags) -> Entry.Flags? { flags.contains(.everyone) ? nil : flags }

    mutating func remove(_ name: Name) -> Int {
        var places: [Int] = []
        ring.forEachPlace { place in
            let entry = ring.entry(at: place)
            let body = unsafe ring.body(at: place, length: Int(entry.bodyLength)).span
            if Int(entry.nameLength) == name.wire.count,
                sameName(body, at: 0, as: name.wire.span, name: 0..<name.wire.count)
            {
                places.append(place)
            }
            return true
        }
        for place in places { ring.remove(at: place) }
        changes &+= UInt64(places.count)
        return places.count
    }

    mutating func removeStandIn(hash: UInt64, _ name: Name, type: RecordType, audience: Entry.Flags) {
        guard let place = ring.place(hash: hash, name, type: type, audience: audience),
            ring.entry(at: place).isStandIn
        else { return }
        changes &+= 1
        ring.remove(at: place)
    }

    mutating func removeAll(where isOutdated: @Sendable (Name, RecordType, Audience) -> Bool) {
        var places: [Int] = []
        ring.forEachPlace { place in
            let entry = ring.entry(at: place)
            let length = Int(entry.nameLength)
            let body = unsafe ring.body(at: place, length: length + 2).span
            let type = RecordType(rawValue: UInt16(body[length]) << 8 | UInt16(body[length + 1]))
            if isOutdated(Name(wire: body, at: 0, length: length), type, entry.flags.whose) { places.append(place) }
            return true
        }
        for place in places { ring.remove(at: place) }
        changes &+= UInt64(places.count)
    }

    mutating func apply(staleSeconds: UInt32, prefetchAt: UInt32) {
        (self.staleSeconds, self.prefetchAt) = (staleSeconds, prefetchAt)
    }

    mutating func removeAll() {
        changes &+= 1
        ring.removeAll()
    }

    func add(to sum: inout DNSCache.Statistics) {
        sum.entries += ring.liveEntries
        sum.bytes += ring.liveBytes
        sum.hits += hits
        sum.misses += misses
        sum.evictions += ring.evictions
    }
}

extension Ring {
    fileprivate func place(hash: UInt64, _ name: Name, type: RecordType, audience: Entry.Flags?) -> Int? {
        place(
            hash: hash, name.wire.span, name: 0..<name.wire.count, type: type.rawValue, audience: audience)
    }
}
