import DNSWire
import Synchronization

/// One lock's share of the cache: a ring of entries, with the rules for finding, aging and replacing them.
///
/// The order of its fields makes a hit, the lock before them included, read and write one cache line
/// (``DNSCache/segments``).
struct Segment: ~Copyable {
    private var hits: UInt64 = 0
    private var misses: UInt64 = 0
    private var epoch: UInt32 = 0
    private var prefetchAt: UInt32
    var ring: Ring
    private(set) var staleSeconds: UInt32
    /// Counts stores and removals, so that the writer of snapshots detects that the last snapshot is outdated.
    private(set) var changes: UInt32 = 0
    /// The rules of the epoch; nil if all answers are right. With it, a segment and its lock fill two cache lines.
    private var rules: DNSCache.Rules?

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
        let clients = Entry.Flags(asking: question)
        guard
            let offset = ring.offset(
                hash: hash, query, name: name, type: question.type.rawValue, serving: clients)
        else {
            misses &+= 1
            return .miss
        }
        var entry = ring.entry(at: offset)
        let elapsed = entry.elapsed(at: now)
        guard elapsed < entry.keep, entry.epoch == epoch || isRight(at: offset) else {
            misses &+= 1
            return .miss
        }
        entry.epoch = epoch
        hits &+= 1
        let due =
            isDue(entry, elapsed, checkingDisabled: question.checkingDisabled) && question.recursionDesired
        if due || !entry.flags.contains(.referenced) {
            entry.flags.insert(.referenced)
            if due { entry.flags.insert(.refreshing) }
            ring.update(at: offset, entry)
        }
        // The reply is written before the lock is released, so the reference to the body does not outlive it.
        let body = unsafe ring.body(at: offset, length: Int(entry.bodyLength)).span
        let length = Reply.write(
            entry.head, body: body, age: .elapsed(elapsed), to: question, query: query, limit: limit, into: &reply)
        return due ? .hitDueForRefresh(length: length) : .hit(length: length)
    }

    // MARK: Epochs

    mutating func obey(_ rules: DNSCache.Rules) {
        epoch &+= 1
        self.rules = rules
    }

    /// Compares the basis of an entry of an earlier epoch with the present basis, and moves the entry to this epoch, or
    /// removes it.
    @inline(never)
    private mutating func isRight(at offset: Int) -> Bool {
        var entry = ring.entry(at: offset)
        let body = unsafe ring.body(at: offset, length: Int(entry.bodyLength)).span
        guard entry.basis == basis(of: entry, body) else {
            changes &+= 1
            ring.remove(at: offset)
            return false
        }
        entry.epoch = epoch
        ring.update(at: offset, entry)
        return true
    }

    /// The basis in this epoch of an answer to the question at the start of a body; nil if no answer to it is right.
    private func basis(of entry: Entry, _ body: Span<UInt8>) -> Basis? {
        guard let rules else { return entry.basis }
        guard let audience = entry.flags.whose else { return nil }
        let length = Int(entry.nameLength)
        let type = RecordType(rawValue: UInt16(body[length]) << 8 | UInt16(body[length + 1]))
        let basis = rules.basis(Name(wire: body, at: 0, length: length), type, audience)
        return basis == 0 ? nil : basis
    }

    /// The offset of an entry that is right and serves these clients, if there is one; a wrong entry is removed.
    private mutating func offset(
        hash: UInt64, _ name: Name, type: RecordType, where fulfils: (Entry) -> Bool
    ) -> Int? {
        while let offset = ring.offset(hash: hash, name, type: type, where: fulfils) {
            if ring.entry(at: offset).epoch == epoch || isRight(at: offset) { return offset }
        }
        return nil
    }

    /// Whether a client's use of an entry is to refresh it. A client with CD does not refresh an answer that serves
    /// other clients: its own answer would be unchecked, and could not replace this one, unless an account gives it.
    private func isDue(_ entry: Entry, _ elapsed: UInt32, checkingDisabled: Bool) -> Bool {
        prefetchAt > 0 && !entry.flags.contains(.refreshing)
            && UInt64(elapsed) * 100 >= UInt64(entry.keep) * UInt64(prefetchAt)
            && (!checkingDisabled || entry.flags.areOfAccounts || entry.flags.isDisjoint(with: [.plain, .dnssecOK]))
    }

    /// The answer for an audience: its own answer while fresh; else a fresh answer with signatures, without these; else
    /// its own answer or the other one, expired. NXDOMAIN is not lent: clients that do not validate get another answer
    /// for a name of which the daemon has an account's addresses, or which the hosts file has.
    mutating func held(
        hash: UInt64, _ name: Name, type: RecordType, audience: Audience, at now: UInt32, isAnyAge: Bool = false
    ) -> DNSCache.Held? {
        let clients = Entry.Flags(asking: audience)
        let own = held(at: offset(hash: hash, name, type: type) { $0.serves(clients) }, at: now, isAnyAge)
        guard !(own?.isFresh ?? false), let lender = clients.lender else { return own }
        let offset = offset(hash: hash, name, type: type) { $0.serves(lender) && !$0.serves(clients) }
        guard let offset, var lent = held(at: offset, at: now, isAnyAge), lent.isFresh || own == nil,
            lent.answer.head.responseCode != .nxDomain, let answer = lent.answer.withoutSignatures(type),
            case .those(dnssecOK: true, let checkingDisabled) = lent.audience,
            case let borrower = Audience.those(dnssecOK: false, checkingDisabled: checkingDisabled),
            // Other clients may get another answer, such as AAAA made from A.
            rules.map({ $0.basis(name, type, borrower) == ring.entry(at: offset).basis }) ?? true
        else { return own }
        (lent.answer, lent.isLent, lent.audience) = (answer, true, borrower)
        return lent
    }

    private func held(at offset: Int?, at now: UInt32, _ isAnyAge: Bool) -> DNSCache.Held? {
        guard let offset else { return nil }
        let entry = ring.entry(at: offset)
        guard isAnyAge || isUsable(entry, at: now) else { return nil }
        let body = unsafe Array(ring.body(at: offset, length: Int(entry.bodyLength)))
        return DNSCache.Held(
            answer: Answer(head: entry.head, body: body, keep: entry.keep, isCacheable: true),
            elapsed: entry.elapsed(at: now), audience: entry.flags.whose ?? .everyone, isStandIn: entry.isStandIn,
            origin: entry.origin)
    }

    /// The result of ``held(hash:_:type:audience:at:)``. A fresh answer that is lent is stored for the clients that
    /// borrow it, so that the next such client finds it at once.
    mutating func take(
        hash: UInt64, _ name: Name, type: RecordType, audience: Audience, at now: UInt32
    ) -> DNSCache.Held? {
        guard var held = held(hash: hash, name, type: type, audience: audience, at: now), held.isFresh else {
            return nil
        }
        if held.isLent {
            store(
                held.answer, hash: hash, name, type: type, audience: held.audience, at: now &- held.elapsed,
                isStandIn: held.isStandIn, origin: held.origin)
        } else if case let clients = Entry.Flags(asking: audience),
            let offset = ring.offset(hash: hash, name, type: type, where: { $0.serves(clients) })
        {
            var entry = ring.entry(at: offset)
            held.isDue = isDue(
                entry, held.elapsed, checkingDisabled: clients.isDisjoint(with: [.plain, .dnssecOK]))
            entry.flags.insert(held.isDue ? [.referenced, .refreshing] : .referenced)
            ring.update(at: offset, entry)
        }
        return held
    }

    /// Whether an entry is fresh, or may be given stale (RFC 8767).
    func isUsable(_ entry: Entry, at now: UInt32) -> Bool {
        UInt64(entry.elapsed(at: now)) < UInt64(entry.keep) + (entry.isStandIn ? 0 : UInt64(staleSeconds))
    }

    mutating func store(
        _ answer: Answer, hash: UInt64, _ name: Name, type: RecordType, audience: Audience, at now: UInt32,
        isStandIn: Bool = false, origin: UInt16 = 0, basis known: Basis? = nil
    ) {
        guard answer.keep > 0, answer.body.count <= Int(UInt16.max), answer.body.count >= name.wire.count + 4 else {
            return
        }
        let clients = Entry.Flags(serving: audience)
        let basis = known ?? rules.map { $0.basis(name, type, audience) }
        guard basis != 0 else { return }
        if let offset = offset(hash: hash, name, type: type, where: { $0.serves(clients) }) {
            let known = ring.entry(at: offset)
            let isOfAccount = known.flags.areOfAccounts
            let isFresh = known.elapsed(at: now) < known.keep
            if isStandIn, isOfAccount ? isUsable(known, at: now) : isFresh && !known.isStandIn { return }
            // The known answer serves these clients and others, and was checked.
            if !isOfAccount, !known.flags.isReplaced(by: clients), isFresh { return }
        }
        changes &+= 1
        while let offset = ring.offset(hash: hash, name, type: type, where: { $0.flags.isReplaced(by: clients) }) {
            ring.remove(at: offset)
        }
        let entry = Entry(
            answer, nameLength: name.wire.count, audience: audience, isStandIn: isStandIn, origin: origin,
            hash: Ring.tag(hash), now: now, basis: basis ?? 0, epoch: epoch)
        _ = ring.append(entry, body: answer.body.span, hash: hash)
    }

    mutating func replaceBody(
        _ old: [UInt8], by new: [UInt8], hash: UInt64, _ name: Name, type: RecordType, clients: Entry.Flags
    ) {
        guard let offset = offset(hash: hash, name, type: type, where: { $0.serves(clients) }), old.count == new.count,
            unsafe ring.body(at: offset, length: Int(ring.entry(at: offset).bodyLength)).elementsEqual(old)
        else { return }
        changes &+= 1
        ring.overwriteBody(at: offset, new.span)
    }

    mutating func removeStandIn(hash: UInt64, _ name: Name, type: RecordType) {
        while let offset = ring.offset(hash: hash, name, type: type, where: \.isStandIn) {
            changes &+= 1
            ring.remove(at: offset)
        }
    }

    /// The types of the answers for a name.
    func types(of name: Name) -> Set<RecordType> {
        var types: Set<RecordType> = []
        var position = ring.start
        while let offset = ring.nextOffset(&position, before: ring.end) {
            let length = Int(ring.entry(at: offset).nameLength)
            guard length == name.wire.count else { continue }
            let body = unsafe ring.body(at: offset, length: length + 2).span
            guard Name(wire: body, at: 0, length: length) == name else { continue }
            types.insert(RecordType(rawValue: UInt16(body[length]) << 8 | UInt16(body[length + 1])))
        }
        return types
    }

    /// - Returns: The number of removed answers.
    mutating func removeAll(in scope: NameScope) -> Int {
        if scope == .all {
            defer { ring.removeAll() }
            changes &+= UInt32(ring.liveEntries)
            return ring.liveEntries
        }
        var (position, count) = (ring.start, 0)
        while let offset = ring.nextOffset(&position, before: ring.end) {
            let length = Int(ring.entry(at: offset).nameLength)
            if case .only(let name) = scope, length != name.wire.count { continue }
            let name = unsafe Name(wire: ring.body(at: offset, length: length).span, at: 0, length: length)
            guard scope.contains(name) else { continue }
            ring.remove(at: offset)
            count += 1
        }
        changes &+= UInt32(count)
        return count
    }

    /// The result for a record of a snapshot.
    enum Restored { case taken, isOther, leftOut }

    /// Restores an entry of a snapshot, unless the entry is not right, its name was forgotten, the question has a newer
    /// entry, or there is no free space. Whether an entry for AAAA, HTTPS or SVCB is right depends on the network's
    /// NAT64 prefix, which may not be known yet: such an entry is restored as one of an earlier epoch, and compared at
    /// its first use.
    mutating func restore(
        _ new: Entry, hash: UInt64, body: Span<UInt8>, age: UInt64, _ forgotten: borrowing Mutex<[NameScope]>
    ) -> Restored {
        guard age < UInt64(new.keep) + UInt64(staleSeconds), ring.hasRoom(for: new.extent) else { return .leftOut }
        let name = Name(wire: body, at: 0, length: Int(new.nameLength))
        let type = RecordType(rawValue: UInt16(body[name.wire.count]) << 8 | UInt16(body[name.wire.count + 1]))
        let isRight = new.basis == basis(of: new, body)
        guard isRight || type == .aaaa || type == .https || type == .svcb else { return .isOther }
        if forgotten.withLock({ $0.contains { $0.contains(name) } }) {
            // The file still contains the answer.
            changes &+= 1
            return .leftOut
        }
        let clients = new.flags.intersection(.audience)
        // No substitute replaces such an answer: see `store`. A snapshot has none.
        let outranks = new.flags.areOfAccounts || age < UInt64(new.keep)
        // An older entry may serve these clients among others, as before the snapshot: the newer answer is found.
        let isKnown = { (known: Entry) in
            !(known.isStandIn && outranks) && !known.flags.isDisjoint(with: clients)
                && (Int32(bitPattern: known.stored &- new.stored) > 0 || known.flags.isReplaced(by: clients))
        }
        guard offset(hash: hash, name, type: type, where: isKnown) == nil else { return .leftOut }
        var entry = new
        entry.epoch = isRight ? epoch : epoch &- 1
        return ring.append(entry, body: body, hash: hash) ? .taken : .leftOut
    }

    mutating func apply(staleSeconds: UInt32, prefetchAt: UInt32) {
        (self.staleSeconds, self.prefetchAt) = (staleSeconds, prefetchAt)
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
    fileprivate func offset(hash: UInt64, _ name: Name, type: RecordType, where fulfils: (Entry) -> Bool) -> Int? {
        offset(hash: hash, name.wire.span, name: 0..<name.wire.count, type: type.rawValue, where: fulfils)
    }
}
