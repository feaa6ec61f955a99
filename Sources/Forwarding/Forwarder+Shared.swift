public import Base
import DNSCache
import DNSWire

/// A look into the store for a step of a flight, or the lease that its refresh takes.
struct SharedRead {
    let flight: Flight
    let step: Int
    let sent: Tick
    /// Until when the step waits for it before its group is asked; nil: the group was asked already.
    var waitsUntil: Tick?
    /// Until when clients wait for it at all, as they do when the group has failed meanwhile.
    var lastWait: Tick
    let isClaim: Bool
}

/// Steps whose groups are shared: the store is looked into before the group's servers are asked, and gets what they
/// answer.
extension Forwarder {
    /// Asks a step's group, or the store first.
    mutating func askStoreOrGroup(_ flight: Flight, _ step: Int, at now: Tick) {
        guard shared.isOn, isShared(flight, step), let budget = shared.budget(at: now) else {
            return askGroup(flight, step, at: now)
        }
        // No client waits for a refresh, so it can wait long enough to save a lookup that another daemon has made.
        let wait = flight.isWanted ? min(budget, waitLeft(flight)) : SharedCache.readTime
        look(flight, step, waits: wait > 0 ? wait : nil, isClaim: false, at: now)
        guard wait == 0 else { return }
        shared.ranOut()
        askGroup(flight, step, at: now)
    }

    private func isShared(_ flight: Flight, _ step: Int) -> Bool {
        flight.isCurrent && groups[flight.route[step].group.rawValue].group.isShared
    }

    private mutating func look(_ flight: Flight, _ step: Int, waits: Int?, isClaim: Bool, at now: Tick) {
        let left = waitLeft(flight)
        let read = SharedRead(
            flight: flight, step: step, sent: now, waitsUntil: waits.map { now.advanced(milliseconds: $0) },
            lastWait: now.advanced(milliseconds: left), isClaim: isClaim)
        let id = SharedReadID(sharedReads.insert(read))
        for moment in Set([waits ?? 0, left, SharedCache.readTime]) where moment > 0 {
            deadlines.insert(.store(id.id), at: now.advanced(milliseconds: moment))
        }
        let key = flight.key
        let question = sharedQuestion(flight.route[step].group, key.name.name, key.type, for: key.audience)
        shared.begin(isClaim ? .claim(id, question) : .read(id, question), at: now)
    }

    /// - Parameter families: those that an account is asked for; nil: at present.
    func sharedQuestion(
        _ group: GroupID, _ name: Name, _ type: RecordType, for audience: Audience, asked families: Families? = nil
    ) -> SharedQuestion {
        let isAccount = groups[group.rawValue].group.carriesAddresses
        return SharedQuestion(
            group: group, name: name, type: type, audience: isAccount ? .everyone : audience,
            families: isAccount ? families ?? policy.families(of: group) : [],
            refusesPrivate: policy.refusesPrivate(name))
    }

    /// Whether a look into the store is under way that clients may still wait for.
    func isLooking(_ flight: Flight, at now: Tick) -> Bool {
        sharedReads.ids.contains { id in
            guard let read = sharedReads[id] else { return false }
            return read.flight === flight && now < read.lastWait
        }
    }

    /// A client has joined a refresh, which had more time.
    mutating func hurry(_ flight: Flight, at now: Tick) {
        let soon = now.advanced(milliseconds: SharedCache.mostWait)
        for id in sharedReads.ids {
            guard var read = sharedReads[id], read.flight === flight, let until = read.waitsUntil, soon < until else {
                continue
            }
            (read.waitsUntil, read.lastWait) = (soon, soon)
            sharedReads[id] = read
            deadlines.insert(.store(id), at: soon)
        }
    }

    /// The step of a read waits for it no longer.
    private mutating func spendWait(_ read: SharedRead, at now: Tick) {
        guard read.waitsUntil != nil, read.flight.isWanted else { return }
        let nanoseconds = now.nanoseconds &- read.sent.nanoseconds
        storeWaits[read.flight.id, default: 0] += Int((nanoseconds + 999_999) / 1_000_000)
    }

    /// Milliseconds for which the clients of a flight may still wait for the store.
    private func waitLeft(_ flight: Flight) -> Int { max(0, SharedCache.mostWait - (storeWaits[flight.id] ?? 0)) }

    // MARK: What the store says

    /// Takes the result of an action for the store.
    /// - Parameter wall: seconds since 1970.
    public mutating func told(_ event: SharedEvent, wall: UInt64, at now: Tick) {
        switch event {
        case .connected: shared.connected(at: now)
        case .lost(let why): shared.goAway(why, at: now)
        case .found(let id, let finding): found(id, finding, wall: wall, at: now)
        case .claimed(let id, let isOurs): claimed(id, isOurs, at: now)
        case .failed(let id, let why):
            let read = id.flatMap { sharedReads.remove($0.id) }
            if id != nil { shared.replied(at: now) }
            if id == nil || read != nil { shared.failed(why, at: now) }
            if let read { goOn(read, at: now) }
        case .written: shared.written()
        case .writeFailed(let why): shared.writeFailed(why, at: now)
        case .dropped(let count): shared.dropped(count)
        case .refused: shared.refused()
        }
        abandonReadsIfAway(at: now)
    }

    private mutating func found(_ id: SharedReadID, _ finding: SharedFinding, wall: UInt64, at now: Tick) {
        guard let read = sharedReads.remove(id.id) else { return shared.replied(at: now) }
        var (worth, content) = (SharedCache.Worth.nothing, SharedContent.noRecord)
        if case .entry(let entry, let isStaleCopy) = finding {
            worth = shared.worth(entry, isStaleCopy: isStaleCopy, wall: wall, at: now)
            content = permitted(entry.content)
        }
        let isHit = if case .fresh = worth { true } else { false }
        shared.answered(isHit, after: now.nanoseconds &- read.sent.nanoseconds, at: now)
        let flight = read.flight
        // The rules have changed since the read began: by the new ones this may not be the answer.
        guard flight.isCurrent else { return goOn(read, at: now) }
        guard flights.contains(flight.id) else {
            // Too late for the clients that asked, but later ones can have it.
            if let elapsed = worth.elapsed { keepUnlessKnown(content, elapsed, flight, read.step, at: now) }
            return
        }
        // The step may have failed meanwhile; what the store has is better than that, unless another step is under way.
        guard flight.isUnderWay(read.step) || flight.isDone && content != .noRecord else {
            return goOn(read, at: now)
        }
        switch worth {
        case .fresh(_, isDue: true) where !flight.isWanted && read.waitsUntil != nil: claim(read, at: now)
        case .fresh(let elapsed, let isDue): take(content, elapsed, isDue: isDue, read, at: now)
        case .stale(let elapsed):
            keepUnlessKnown(content, elapsed, flight, read.step, at: now)
            tell(flight, .staleFound, at: now)
            goOn(read, at: now)
        case .nothing: goOn(read, at: now)
        }
    }

    /// Another daemon may keep answers for longer.
    func permitted(_ content: SharedContent) -> SharedContent {
        guard case .answer(var answer) = content else { return content }
        answer.clampTTLs(minimum: 0, maximum: timing.maxTTL)
        return .answer(answer)
    }

    /// The store has no answer: a refresh takes the lease, any other question goes to the group.
    private mutating func goOn(_ read: SharedRead, at now: Tick) {
        guard flights.contains(read.flight.id) else { return }
        spendWait(read, at: now)
        guard read.waitsUntil != nil else { return tell(read.flight, .storeIsSilent, at: now) }
        guard !read.isClaim, !read.flight.isWanted, shared.isOn, isShared(read.flight, read.step) else {
            return askGroup(read.flight, read.step, at: now)
        }
        claim(read, at: now)
    }

    private mutating func claim(_ read: SharedRead, at now: Tick) {
        guard shared.budget(at: now) != nil else { return askGroup(read.flight, read.step, at: now) }
        look(read.flight, read.step, waits: SharedCache.readTime, isClaim: true, at: now)
    }

    private mutating func claimed(_ id: SharedReadID, _ isOurs: Bool, at now: Tick) {
        guard let read = sharedReads.remove(id.id) else { return shared.replied(at: now) }
        shared.answered(nil, after: 0, at: now)
        let flight = read.flight
        guard flights.contains(flight.id) else { return }
        guard !isOurs, !flight.isWanted else { return goOn(read, at: now) }
        // Another daemon refreshes the entry: its answer will be in the store when a client asks.
        shared.leaseLost()
        tell(flight, .dropped(step: read.step), at: now)
    }

    /// A deadline of a read has come: its step waits no longer, or the read has failed.
    mutating func storeMoment(_ id: TableID, at now: Tick) {
        guard var read = sharedReads[id] else { return }
        if now.milliseconds(since: read.sent) >= SharedCache.readTime {
            sharedReads.remove(id)
            shared.failed("no answer within \(SharedCache.readTime) ms", at: now)
            goOn(read, at: now)
        } else if let waitsUntil = read.waitsUntil, waitsUntil <= now {
            spendWait(read, at: now)
            read.waitsUntil = nil
            sharedReads[id] = read
            shared.ranOut()
            if flights.contains(read.flight.id) { askGroup(read.flight, read.step, at: now) }
        } else if flights.contains(read.flight.id) {
            tell(read.flight, .storeIsSilent, at: now)
        }
        abandonReadsIfAway(at: now)
    }

    /// Once the store is given up, its reads are not answered any more.
    mutating func abandonReadsIfAway(at now: Tick) {
        guard !shared.isOn, sharedReads.count > 0 else { return }
        for id in sharedReads.ids {
            if let read = sharedReads.remove(id) { goOn(read, at: now) }
        }
    }

    // MARK: Entries

    /// Answers a flight with an entry.
    private mutating func take(
        _ content: SharedContent, _ elapsed: UInt32, isDue: Bool, _ read: SharedRead, at now: Tick
    ) {
        let (flight, group) = (read.flight, read.flight.route[read.step].group)
        let isAccount = groups[group.rawValue].group.carriesAddresses
        switch content {
        case .noRecord:
            guard isAccount else { return goOn(read, at: now) }
            noRecord(
                flight.key.name, for: negativeTTL(of: group) &- min(elapsed, negativeTTL(of: group)), at: group, now)
            tellWithoutRecord(flight, at: group, by: .sharedCache(group), at: now)
        case .answer(var answer):
            guard content.outlasts(elapsed) else { return goOn(read, at: now) }
            let key = flight.key
            guard isAccount || !flight.standsIn(read.step, rules) else {
                answer.spend(seconds: Int(elapsed))
                return tell(flight, .stored(step: read.step, answer, by: .sharedCache(group)), at: now)
            }
            rank(&answer, of: key.name, key.type, at: now)
            keepShared(answer, elapsed, key, by: group, at: now)
            if read.waitsUntil == nil { withdraw(flight) }
            end(flight, with: answer, age: .elapsed(elapsed), by: .sharedCache(group))
            if isDue, shared.refreshes {
                receive(key.name.name, key.type, for: key.audience, from: nil, of: .daemon, at: now)
            }
        }
    }

    /// Puts an entry that comes too late, or whose time is over, into the cache, unless something is there.
    private mutating func keepUnlessKnown(
        _ content: SharedContent, _ elapsed: UInt32, _ flight: Flight, _ step: Int, at now: Tick
    ) {
        let (key, group) = (flight.key, flight.route[step].group)
        guard case .answer(let answer) = content,
            cache.find(key.name.name, type: key.type, for: key.audience, at: now.seconds) == nil
        else { return }
        keepShared(answer, elapsed, key, by: group, at: now)
    }

    /// Caches an answer of the store, as old as it is there.
    private mutating func keepShared(
        _ answer: Answer, _ elapsed: UInt32, _ key: Flight.Key, by group: GroupID, at now: Tick
    ) {
        let isAccount = groups[group.rawValue].group.carriesAddresses
        cache.store(
            answer, to: key.name.name, type: key.type,
            for: policy.served(isAccount ? .everyone : key.audience, key.name.name, key.type),
            at: now.seconds &- elapsed, teller: group.teller)
    }

    /// Gives the store what a group has answered.
    mutating func share(
        _ content: SharedContent, by group: GroupID, to name: Name, _ type: RecordType, for audience: Audience,
        lifetime: UInt32, at now: Tick
    ) {
        guard shared.isOn, groups[group.rawValue].group.isShared else { return }
        shared.write(sharedQuestion(group, name, type, for: audience), content, lifetime: lifetime, at: now)
    }

    /// Deletes what the store may have of a name, in the groups that are shared: of an account also what was said while it was
    /// asked for other families, as the routes of each daemon have it.
    mutating func forgetShared(_ name: Name) {
        guard shared.settings != nil else { return }
        var questions: [SharedQuestion] = []
        for group in groups where group.group.isShared && !group.isEmpty {
            if group.group.carriesAddresses {
                for families in [Families.ipv4, .ipv6, .both] {
                    for type in [RecordType.a, .aaaa] {
                        questions.append(sharedQuestion(group.id, name, type, for: .everyone, asked: families))
                    }
                }
            } else {
                for type in RecordType.named {
                    for audience in Audience.ofClients {
                        questions.append(sharedQuestion(group.id, name, type, for: audience))
                    }
                }
            }
        }
        shared.act(.delete(questions))
    }
}
