public import Base
import DNSCache
import DNSWire

/// Steps whose groups are shared: the store is read before the group's servers are asked, and gets their answers. The
/// store's replies become events of flights here; ``StoreDesk`` decides about reads and writes.
extension Forwarder {
    /// Asks a step's group, or the store first.
    mutating func askStoreOrGroup(_ flight: Flight, _ step: Int, at now: Tick) {
        let (key, group) = (flight.key, flight.route[step].group)
        if policy.leavesOut(group, key.type), flight.isCurrent || policy.leads(key.name.name, key.type, to: group) {
            let answer = policy.noData(key.name.name, key.type)
            return tell(flight, .stored(StepAnswer(answer: answer, by: .group(group), step: step)), at: now)
        }
        if store.isOn, flight.isCurrent, !flight.isBinding, desk.rules[group].isShared {
            let isAccount = desk.rules[group].carriesAddresses
            let subject = StoreSubject(
                flight: flight.id, step: step, key: key, bases: flight.bases,
                question: sharedQuestion(group, key.name.name, key.type, for: key.audience), isAccount: isAccount,
                standsIn: flight.standsIn(step, desk.rules),
                endsThatLeadOn: flight.endsThatLeadOn(from: step, desk.rules),
                known: storedAt(key, by: group, at: now))
            if store.look(for: subject, isWanted: flight.isWanted, at: now, &desk.actions) { return }
        }
        askGroup(flight, step, at: now)
    }

    /// - Parameter families: The families that an account was asked for; nil for the present families.
    func sharedQuestion(
        _ group: GroupID, _ name: Name, _ type: RecordType, for audience: Audience, asked families: Families? = nil
    ) -> SharedQuestion {
        let isAccount = desk.rules[group].carriesAddresses
        return SharedQuestion(
            group: group, name: name, type: type, audience: isAccount ? .everyone : audience,
            families: isAccount ? families ?? policy.families(of: group) : [],
            refusesPrivate: policy.refusesPrivate(name))
    }

    /// When a group's answer in the cache was stored, even if it may no longer be given; in seconds of ``Tick``, nil if
    /// there is none. After a restart its group is unknown, and may be this one.
    func storedAt(_ key: Flight.Key, by group: GroupID, at now: Tick) -> Int? {
        guard
            let known = cache.find(
                key.name.name, type: key.type, for: key.audience, at: now.seconds, isAnyAge: true),
            !known.isStandIn, known.origin == 0 || known.origin == group.origin,
            // Made AAAA records are as old as their making.
            !known.answer.addresses.contains(where: policy.isTranslated)
        else { return nil }
        return Int(now.seconds) - Int(known.elapsed)
    }

    // MARK: Replies of the store

    /// Takes the result of an action for the store.
    /// - Parameter wall: Seconds since 1970.
    public mutating func handle(_ event: SharedEvent, wall: UInt64, at now: Tick) {
        store.handle(event, wall: wall, maxTTL: timing.maxTTL, at: now, &desk.actions)
        takeFindings(at: now)
    }

    /// Passes the store's replies to flights.
    mutating func takeFindings(at now: Tick) {
        while let finding = store.takeFinding() { take(finding, at: now) }
        handleDeskEvents(at: now)
    }

    private mutating func take(_ finding: StoreFinding, at now: Tick) {
        let subject = finding.subject
        // The flight may have ended by an earlier finding.
        let flight = flights[subject.flight]
        switch finding.news {
        case .known(let content, let elapsed):
            cacheUnlessKnown(content, elapsed, subject, at: now)
            if let flight { tell(flight, .staleFound, at: now) }
        case .fresh(let content, let elapsed, let isDue):
            if let flight { take(content, elapsed, isDue: isDue, flight, subject, at: now) }
        case .nothing: if let flight { tell(flight, .storeIsSilent, at: now) }
        case .askGroup: if let flight { askGroup(flight, subject.step, at: now) }
        case .leaseLost: if let flight { tell(flight, .dropped(step: subject.step), at: now) }
        }
    }

    // MARK: Entries

    /// An entry as a server's answer: its writer may have known another NAT64 prefix or none, and may have other families
    /// or no account.
    private mutating func judged(_ entry: Answer, _ elapsed: UInt32, _ subject: StoreSubject, at now: Tick) -> Answer {
        let key = subject.key
        var answer = permitted(
            withoutMapped(entry, to: key), to: key, by: subject.question.group, for: entry.keep, at: now)
        answer.clampTTLs(minimum: 0, maximum: longestTTL(of: answer, to: key, at: now) + elapsed)
        return answer
    }

    /// Answers a flight with an entry.
    private mutating func take(
        _ content: SharedContent, _ elapsed: UInt32, isDue: Bool, _ flight: Flight, _ subject: StoreSubject,
        at now: Tick
    ) {
        let (step, key, group) = (subject.step, subject.key, subject.question.group)
        // The step may have failed meanwhile; an entry is better than a failure. While another step is under way, the
        // entry is not given at once.
        guard flight.isUnderWay(step) || flight.isDone && content != .noRecord else {
            if flight.steps[step] == .failed { cacheUnlessKnown(content, elapsed, subject, at: now) }
            return tell(flight, .storeIsSilent, at: now)
        }
        guard case .answer(let entry) = content else {
            desk.noRecord(key.name, after: elapsed, at: group, now)
            return tell(flight, noRecordEvent(flight, at: group, by: .sharedCache(group), after: elapsed), at: now)
        }
        let aged = { (answer: Answer) in
            var answer = answer
            answer.spend(seconds: Int(elapsed))
            return StepAnswer(answer: answer, by: .sharedCache(group), step: step)
        }
        var answer = judged(entry, elapsed, subject, at: now)
        if lookForA(flight, after: aged(answer), at: now) { return }
        if answer.ends(as: flight.endsThatLeadOn(from: step, desk.rules)) {
            return tell(flight, .answered(aged(answer)), at: now)
        }
        guard !flight.standsIn(step, desk.rules) else { return tell(flight, .stored(aged(answer)), at: now) }
        answer = existing(answer, key, of: flight, before: step, at: now)
        rank(&answer, of: key.name, key.type, at: now)
        cacheShared(answer, elapsed, subject, at: now)
        desk.withdraw(flight)
        end(flight, with: answer, age: .elapsed(elapsed), by: .sharedCache(group))
        if isDue { receive(key, nil, of: .daemon, at: now) }
    }

    /// Caches an entry that comes too late or has expired, unless the cache has one. An entry that would not have been
    /// the answer in time is not cached, nor is a fresh one that would have been a substitute.
    private mutating func cacheUnlessKnown(
        _ content: SharedContent, _ elapsed: UInt32, _ subject: StoreSubject, at now: Tick
    ) {
        let key = subject.key
        guard case .answer(let entry) = content else { return }
        let answer = judged(entry, elapsed, subject, at: now)
        guard !isMadeOfA(key, answer), !answer.ends(as: subject.endsThatLeadOn) else { return }
        let isFresh = elapsed < answer.keep
        if isFresh, subject.standsIn { return }
        let known = cache.find(key.name.name, type: key.type, for: key.audience, at: now.seconds)
        let isBetter = known.map { $0.isStandIn && isFresh } ?? true
        if isBetter { cacheShared(existing(answer, key, at: now), elapsed, subject, at: now) }
    }

    /// Caches an answer of the store, with its age in the store. That there is no AAAA record is cached for such clients
    /// as have asked: others get made records.
    private mutating func cacheShared(_ answer: Answer, _ elapsed: UInt32, _ subject: StoreSubject, at now: Tick) {
        let key = subject.key
        let isMadeForOthers = policy.synthesis != nil && key.type == .aaaa && answer.lacksTheType
        let audience = isMadeForOthers ? key.audience : subject.question.audience
        cache.store(
            answer, to: key.name.name, type: key.type, for: policy.served(audience, key.name.name, key.type),
            at: now.seconds &- elapsed, origin: subject.question.group.origin)
    }

    /// Writes a group's answer to the store.
    mutating func share(
        _ content: SharedContent, by group: GroupID, to name: Name, _ type: RecordType, for audience: Audience,
        at now: Tick
    ) {
        guard store.isOn, desk.rules[group].isShared else { return }
        let lifetime = if case .answer(let answer) = content { answer.keep } else { desk.rules.negativeTTL(of: group) }
        store.write(
            sharedQuestion(group, name, type, for: audience), content, lifetime: lifetime, at: now, &desk.actions)
    }

    /// Deletes a name's entries in the store, in all shared groups, and for an account in all combinations of families,
    /// since other daemons may ask for other families. Of the types without a mnemonic, those that the cache has: there
    /// are too many to delete each.
    mutating func forgetShared(_ name: Name) {
        guard store.settings != nil else { return }
        var questions: [SharedQuestion] = []
        let types = cache.types(of: name).union(RecordType.named)
        for group in desk.ids where desk.rules[group].isShared {
            if desk.rules[group].carriesAddresses {
                for families in [Families.ipv4, .ipv6, .both] {
                    for type in [RecordType.a, .aaaa] {
                        questions.append(sharedQuestion(group, name, type, for: .everyone, asked: families))
                    }
                }
            } else if desk.rules[group].hasServers {
                for type in types {
                    for audience in Audience.ofClients {
                        questions.append(sharedQuestion(group, name, type, for: audience))
                    }
                }
            }
        }
        act(.shared(.delete(questions)))
    }
}

extension Answer {
    /// Whether the answer means one of these ends for its step.
    fileprivate func ends(as ends: StepEnds) -> Bool {
        StepEnds(of: self).map { !$0.isDisjoint(with: ends) } ?? false
    }
}
