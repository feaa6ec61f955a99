import Base

/// Decides about the store of a fleet: whether it is asked, how long a question waits, whether its entries are usable,
/// and when it is dialled.
///
/// One rule decides: a store makes no question less reliable, and none slower by more than ``mostWait``. The inputs of
/// the desk are events and the time. The desk appends orders for the shell to `actions`, and results for steps to the findings: see
/// ``takeFinding()``.
struct StoreDesk {
    /// The present settings; nil if no store is configured.
    private(set) var settings: SharedSettings?
    private(set) var counters = SharedCacheCounters()
    private var health = StoreHealth()
    /// Replies that the store owes.
    private var owed = 0
    /// When the store's present silence began; nil if no request is open.
    private var silentSince: Tick?
    private var pace = StorePace()
    private(set) var clock = StoreClock()
    private var isClockReported = false
    /// The awaited reads and claims, and the next check of each.
    private var reads = Table<StoreRead>()
    private var moments = Deadlines<TableID>()
    /// The flights under way that have asked the store.
    private var flights: [TableID: StorePatience] = [:]
    private var findings: [StoreFinding] = []

    /// The longest wait of a client's question for the store, in milliseconds.
    static let mostWait = 5
    /// The timeout of a read, in milliseconds.
    static let readTime = 50
    /// The most replies owed: requests are answered in order, so further requests would only wait.
    static let maximumReads = 256
    /// The shortest remaining lifetime with which an answer is written to the store, and the longest time that a stale
    /// copy is retained; in seconds.
    static let leastLifetime: UInt32 = 5
    static let mostStale: UInt32 = 86_400

    var isOn: Bool { health.isOn }

    var overview: SharedCacheOverview {
        var counters = counters
        counters.outages = health.outages
        return SharedCacheOverview(
            isOn: isOn, reason: health.reason, nextTry: health.nextTry, budget: pace.budget, usual: pace.usual,
            counters: counters)
    }

    /// The oldest finding not yet taken.
    mutating func takeFinding() -> StoreFinding? { findings.isEmpty ? nil : findings.removeFirst() }

    // MARK: Looks

    /// The milliseconds that a client's question waits for a read that begins now. With 0 the question does not wait,
    /// but the reply is used; nil if the store is not asked.
    func budget(at now: Tick) -> Int? {
        guard isOn, owed < Self.maximumReads else { return nil }
        // Reads are answered in order: a read behind a late read is later still.
        if let silentSince, now.milliseconds(since: silentSince) >= Self.mostWait { return 0 }
        return pace.budget
    }

    /// Reads the store for a step.
    /// - Parameter isWanted: Whether clients wait for the flight. A refresh has no client, so it can wait long enough
    ///   to save a lookup that another daemon has made.
    /// - Returns: Whether the step waits for the result; if not, its group is asked now.
    mutating func look(for subject: StoreSubject, isWanted: Bool, at now: Tick, _ actions: inout [Action]) -> Bool {
        guard let budget = budget(at: now) else { return false }
        flights[subject.flight, default: StorePatience()].isWanted = isWanted
        let wait = isWanted ? min(budget, flights[subject.flight]?.left ?? 0) : Self.readTime
        if wait == 0 { counters.late += 1 }
        begin(subject, isClaim: false, wait: wait, at: now, &actions)
        return wait > 0
    }

    private mutating func begin(
        _ subject: StoreSubject, isClaim: Bool, wait: Int, at now: Tick, _ actions: inout [Action]
    ) {
        let left = flights[subject.flight]?.left ?? 0
        let read = StoreRead(subject, isClaim: isClaim, wait: wait, clientsWait: left, at: now)
        let id = reads.insert(read)
        schedule(id, read.next(after: now))
        owed += 1
        if silentSince == nil { silentSince = now }
        let number = SharedReadID(id)
        actions.append(.shared(isClaim ? .claim(number, subject.question) : .read(number, subject.question)))
    }

    private mutating func schedule(_ id: TableID, _ moment: Tick) {
        moments.insert(id, at: moment)
        guard moments.count > 4 * Self.maximumReads else { return }
        moments.compact { [reads] in reads.contains($0) }
    }

    /// Whether clients of a flight still wait for the store after its groups have failed.
    func isWaitedFor(by flight: TableID, at now: Tick) -> Bool {
        isOn
            && reads.ids.contains { id in
                reads[id].map { $0.subject.flight == flight && now < $0.clientsWaitUntil } ?? false
            }
    }

    /// Shortens the wait of a refresh that a client has joined.
    mutating func hurry(_ flight: TableID, at now: Tick) {
        flights[flight]?.isWanted = true
        let soon = now.advanced(milliseconds: Self.mostWait)
        for id in reads.ids where reads[id]?.subject.flight == flight {
            guard var read = reads[id], let before = read.groupAskedAt, soon < before else { continue }
            (read.groupAskedAt, read.clientsWaitUntil) = (soon, soon)
            reads[id] = read
            schedule(id, soon)
        }
    }

    /// Notes the end of a flight. A later reply of the store to the flight is only cached.
    mutating func ended(_ flight: TableID) {
        if !flights.isEmpty { flights[flight] = nil }
    }

    /// The rules have changed for these steps: replies to their reads under way are not their answers any more.
    mutating func outdate(where isMeant: (StoreSubject) -> Bool) {
        for id in reads.ids {
            guard var read = reads[id], isMeant(read.subject) else { continue }
            read.isOutdated = true
            reads[id] = read
        }
    }

    // MARK: Replies of the store

    /// Takes the result of an action.
    /// - Parameters:
    ///   - wall: The time, in seconds since 1970.
    ///   - maxTTL: This daemon's limit, in seconds; the limit of the writer may be higher.
    mutating func handle(
        _ event: SharedEvent, wall: UInt64, maxTTL: UInt32, at now: Tick, _ actions: inout [Action]
    ) {
        switch event {
        case .connected:
            guard health.connected(at: now, &actions) else { return }
            (owed, silentSince, pace) = (0, nil, StorePace())
        case .lost(let why): health.goAway(why, at: now, &actions)
        case .found(let id, let finding):
            replied(at: now)
            guard let read = reads.remove(id.id) else { return }
            found(read, finding, wall: wall, maxTTL: maxTTL, at: now, &actions)
        case .claimed(let id, let isOurs):
            replied(at: now)
            guard let read = reads.remove(id.id) else { return }
            health.answered()
            guard !isOurs, flights[read.subject.flight]?.isWanted == false else {
                return storeHasNothing(read, at: now, &actions)
            }
            counters.leasesLost += 1
            say(.leaseLost, to: read)
        case .failed(let id?, let why):
            replied(at: now)
            guard let read = reads.remove(id.id) else { break }
            // A store that takes no more entries refuses each claim, and is still read.
            if read.isClaim { storeHasNothing(read, at: now, &actions) } else { failed(read, why, at: now, &actions) }
        case .failed(nil, let why): failed(nil, why, at: now, &actions)
        case .written:
            counters.writes += 1
            health.written(&actions)
        case .writeFailed(let why):
            counters.writesFailed += 1
            health.writeFailed(why, at: now, &actions)
        case .dropped(let count): counters.dropped += UInt64(count)
        case .refused: counters.refused += 1
        }
        abandonReadsIfAway(at: now, &actions)
    }

    private mutating func found(
        _ read: StoreRead, _ finding: SharedFinding, wall: UInt64, maxTTL: UInt32, at now: Tick,
        _ actions: inout [Action]
    ) {
        var (content, worth) = (SharedContent.noRecord, StoreClock.Worth.nothing)
        if case .entry(let entry, let isStaleCopy) = finding, let settings {
            worth = clock.worth(
                entry, isStaleCopy: isStaleCopy, settings, after: read.subject.known, wall: wall, at: now)
            content = entry.content.clampedToOwnTTL(maxTTL)
        }
        if worth == .ahead {
            counters.ignored += 1
            if !isClockReported { actions.append(.report(.sharedCacheClock)) }
            isClockReported = true
        }
        health.answered()
        counters.reads += 1
        pace.add(now.nanoseconds &- read.sent.nanoseconds, worth.isFresh)
        if pace.isTooSlow { health.goAway("it takes longer than \(Self.mostWait) ms", at: now, &actions) }
        if worth.isFresh { counters.hits += 1 }
        guard !read.isOutdated else { return storeHasNothing(read, at: now, &actions) }
        let flight = flights[read.subject.flight]
        // A refresh takes the lease for an entry that is due, just as for an absent entry.
        let isRefresh = flight?.isWanted == false && read.groupAskedAt != nil
        switch worth {
        case .fresh(let elapsed, _) where flight == nil: say(.known(content, elapsed: elapsed), to: read)
        case .fresh(let elapsed, let isDue)
        where !(isDue && isRefresh) && content.isUsable(after: elapsed, isOfAccount: read.subject.isAccount):
            say(.fresh(content, elapsed: elapsed, isDue: isDue && settings?.prefetchAt ?? 0 > 0), to: read)
        case .stale(let elapsed):
            say(.known(content, elapsed: elapsed), to: read)
            storeHasNothing(read, at: now, &actions)
        case .fresh, .nothing, .ahead: storeHasNothing(read, at: now, &actions)
        }
    }

    /// Without a usable entry or a reply, a refresh takes the lease; any other question goes to the group.
    private mutating func storeHasNothing(_ read: StoreRead, at now: Tick, _ actions: inout [Action]) {
        guard let flight = flights[read.subject.flight] else { return }
        guard read.groupAskedAt != nil else { return say(.nothing, to: read) }
        flights[read.subject.flight]?.waited(since: read.sent, now)
        guard !read.isClaim, !read.isOutdated, !flight.isWanted, budget(at: now) != nil else {
            return say(.askGroup, to: read)
        }
        begin(read.subject, isClaim: true, wait: Self.readTime, at: now, &actions)
    }

    private mutating func say(_ news: StoreFinding.News, to read: StoreRead) {
        findings.append(StoreFinding(subject: read.subject, news: news))
    }

    /// Counts a reply to a read or a claim, even a late one or an error.
    private mutating func replied(at now: Tick) {
        owed = max(0, owed - 1)
        silentSince = owed > 0 ? now : nil
    }

    /// Handles a failed read, a claim without a reply, or a failed read of the generation. A reply that is late is still
    /// owed.
    private mutating func failed(_ read: StoreRead?, _ why: String, at now: Tick, _ actions: inout [Action]) {
        if isOn { health.failed(why, at: now, &actions) }
        if let read { endUnanswered(read, at: now, &actions) }
    }

    private mutating func endUnanswered(_ read: StoreRead, at now: Tick, _ actions: inout [Action]) {
        if !read.isClaim {
            counters.reads += 1
            counters.failures += 1
        }
        storeHasNothing(read, at: now, &actions)
    }

    // MARK: Time

    /// When `expire` must be called next; nil if no work is under way.
    var nextDeadline: Tick? {
        mutating get {
            while let first = moments.first, !reads.contains(first) { moments.removeFirst() }
            return moments.next.orEarlier(health.nextDeadline)
        }
    }

    mutating func expire(at now: Tick, _ actions: inout [Action]) {
        health.expire(at: now, &actions)
        while let id = moments.popDue(at: now) { lookAgain(at: id, now, &actions) }
        abandonReadsIfAway(at: now, &actions)
    }

    /// Handles a read that has taken as long as its step waits, or as long as a read may.
    private mutating func lookAgain(at id: TableID, _ now: Tick, _ actions: inout [Action]) {
        guard var read = reads[id] else { return }
        guard now < read.failsAt else {
            reads.remove(id)
            return failed(read, "no answer within \(Self.readTime) ms", at: now, &actions)
        }
        let isUnderWay = flights[read.subject.flight] != nil
        if let moment = read.groupAskedAt, moment <= now {
            flights[read.subject.flight]?.waited(since: read.sent, now)
            read.groupAskedAt = nil
            reads[id] = read
            counters.late += 1
            if isUnderWay { say(.askGroup, to: read) }
        } else if read.groupAskedAt == nil, isUnderWay {
            say(.nothing, to: read)
        }
        schedule(id, read.next(after: now))
    }

    // MARK: Connection

    /// Applies other settings: the store may be another store, so it is dialled again.
    mutating func begin(_ new: SharedSettings?, at now: Tick, _ actions: inout [Action]) {
        if health.isInUse { actions.append(.shared(.hangUp)) }
        (settings, pace, clock, isClockReported) = (new, StorePace(), StoreClock(), false)
        health = StoreHealth(outages: health.outages)
        if new != nil { health.dial(at: now, &actions) }
        abandonReadsIfAway(at: now, &actions)
    }

    mutating func networkChanged(at now: Tick, _ actions: inout [Action]) { health.networkChanged(at: now, &actions) }

    /// Ends the reads of a store that is given up: no reply will come.
    private mutating func abandonReadsIfAway(at now: Tick, _ actions: inout [Action]) {
        guard !isOn, reads.count > 0 else { return }
        for id in reads.ids {
            if let read = reads.remove(id) { endUnanswered(read, at: now, &actions) }
        }
    }

    // MARK: Writes

    mutating func write(
        _ question: SharedQuestion, _ content: SharedContent, lifetime: UInt32, at now: Tick, _ actions: inout [Action]
    ) {
        guard health.takesWrites(at: now), let settings, lifetime >= Self.leastLifetime else { return }
        let stale = min(settings.staleSeconds, Self.mostStale)
        actions.append(.shared(.write(question, content, lifetime: lifetime, stale: stale)))
    }
}

/// A step of a flight that reads the store before its group is asked. It refers to its flight by number only.
struct StoreSubject {
    let flight: TableID
    let step: Int
    /// The flight's question, for the cache.
    let key: Flight.Key
    /// See ``Flight/bases``.
    var bases = AnswerBases()
    /// The question to the store.
    let question: SharedQuestion
    /// Whether the group carries addresses; only such a group can have "no record".
    let isAccount: Bool
    /// Whether the group's answer is only a substitute: see ``Flight/standsIn(_:_:)``.
    var standsIn = false
    /// See ``Flight/endsThatLeadOn(from:_:)``.
    var endsThatLeadOn: StepEnds = []
    /// See ``Forwarder/storedAt(_:by:at:)``. No earlier answer of the store replaces this answer, which the store may
    /// have missed.
    var known: Int?
}

/// The store's reply to a step, or the meaning of its silence.
struct StoreFinding {
    let subject: StoreSubject
    let news: News

    enum News: Equatable {
        /// A fresh entry, `elapsed` seconds old. `isDue`: whether it is to be refreshed.
        case fresh(SharedContent, elapsed: UInt32, isDue: Bool)
        /// An entry that comes too late for the flight, or has expired: it is only cached.
        case known(SharedContent, elapsed: UInt32)
        /// The group was asked already, and the store either has no entry or has not replied in time.
        case nothing
        /// The step goes on without the store, and its group is to be asked.
        case askGroup
        /// Another daemon refreshes the entry: its answer will be in the store when a client asks.
        case leaseLost
    }
}

/// A read, or a claim of the lease, that the store has not answered.
struct StoreRead {
    let subject: StoreSubject
    /// Whether the request takes the lease of a refresh.
    let isClaim: Bool
    let sent: Tick
    /// When the group is asked if the store has not replied; nil if it was asked already.
    var groupAskedAt: Tick?
    /// Until when clients wait for the store if the group has failed meanwhile.
    var clientsWaitUntil: Tick
    /// Whether the rules have changed since, so that the entry may no longer be the answer.
    var isOutdated = false

    /// - Parameters: `wait` and `clientsWait` are in milliseconds.
    init(_ subject: StoreSubject, isClaim: Bool, wait: Int, clientsWait: Int, at now: Tick) {
        (self.subject, self.isClaim, sent) = (subject, isClaim, now)
        groupAskedAt = wait > 0 ? now.advanced(milliseconds: wait) : nil
        clientsWaitUntil = now.advanced(milliseconds: clientsWait)
    }

    var failsAt: Tick { sent.advanced(milliseconds: StoreDesk.readTime) }

    /// When the read is to be checked again.
    func next(after now: Tick) -> Tick {
        if let groupAskedAt { return min(groupAskedAt, failsAt) }
        return clientsWaitUntil > now ? clientsWaitUntil : failsAt
    }
}

/// How long a flight may still wait for the store.
struct StorePatience {
    /// Whether a client has asked.
    var isWanted = false
    /// Milliseconds that the flight's clients have waited.
    private var spent = 0

    /// The time left, in milliseconds.
    var left: Int { max(0, StoreDesk.mostWait - spent) }

    mutating func waited(since begin: Tick, _ now: Tick) {
        if isWanted { spent += Int((now.nanoseconds &- begin.nanoseconds + 999_999) / 1_000_000) }
    }
}
