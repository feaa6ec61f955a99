public import Base
import DNSCache
import DNSWire

/// Lookups and trials of the daemon's own.
extension Forwarder {
    /// Looks up the names of `preResolve` and `keepAliveDomains`, ``startedPerSecond`` of each list a second. The given
    /// names replace the earlier ones: names new to `preResolve` are looked up, and those of `keepAlive` are refreshed
    /// regularly from now on.
    mutating func start(preResolve: [Name], keepAlive: [Name], at now: Tick) {
        let (former, kept) = (Set(self.preResolve), Set(keepAlive))
        self.preResolve = preResolve.filter { !kept.contains($0) }
        let wanted = Set(self.preResolve)
        notPreResolved.removeAll { !wanted.contains($0) }
        unanswered.removeAll { !wanted.contains($0) }
        lookUpAtStart(self.preResolve.filter { !former.contains($0) }, at: now)
        if !self.keepAlive.isEmpty { deadlines.compact { if case .keepAlive = $0 { false } else { true } } }
        self.keepAlive = keepAlive
        for index in keepAlive.indices {
            let seconds = index / Self.startedPerSecond
            if seconds == 0 { refreshKeepAlive(index, at: now) } else { schedule(.keepAlive(index), seconds, at: now) }
        }
    }

    private mutating func lookUpAtStart(_ names: [Name], at now: Tick) {
        let isUnderWay = !notPreResolved.isEmpty
        notPreResolved += names
        if !isUnderWay { preResolveNext(at: now) }
    }

    /// Looks up the next names of `preResolve`.
    mutating func preResolveNext(at now: Tick) {
        let next = notPreResolved.prefix(Self.startedPerSecond)
        for name in next { refresh(name, at: now) }
        unanswered += next
        notPreResolved.removeFirst(next.count)
        if !notPreResolved.isEmpty { schedule(.preResolve, 1, at: now) }
    }

    /// Looks up the names of `preResolve` that had no answer, as before there was a network. An expired answer without an
    /// origin is of an earlier run.
    mutating func preResolveAgain(at now: Tick) {
        let names = exchange(&unanswered, with: []).filter { name in
            let known = known(name, at: now)
            return known.isEmpty || known.contains { !$0.isFresh && $0.origin == 0 }
        }
        lookUpAtStart(names, at: now)
    }

    private mutating func schedule(_ moment: Moment, _ seconds: Int, at now: Tick) {
        deadlines.insert(moment, at: now.advanced(milliseconds: seconds * 1000))
    }

    /// A name takes two flights of the 1536 that there are; for the daemon, none of them ends.
    private static var startedPerSecond: Int { 128 }

    private mutating func refresh(_ name: Name, at now: Tick) {
        for type in [RecordType.a, .aaaa] {
            receive(name, type, for: .plain, from: nil, by: .daemon, at: now)
        }
    }

    /// Refreshes a name when its addresses have passed three quarters of their TTL, or the name has no addresses, at
    /// most once a minute as in the SDK. A family without addresses is looked up together with the other family.
    ///
    /// The cache is read each minute, since the addresses can go before their time: by a flush, another list or
    /// network, or an eviction.
    mutating func refreshKeepAlive(_ index: Int, at now: Tick) {
        let name = keepAlive[index]
        let known = known(name, at: now).filter { $0.answer.head.answerCount > 0 }
        func due(_ known: DNSCache.Held) -> UInt32 { known.answer.keep - known.answer.keep / 4 }
        var next = Self.shortestRefresh
        if let left = known.map({ max(due($0), $0.elapsed) - $0.elapsed }).min(), left > 0 {
            next = min(left, next)
        } else {
            refresh(name, at: now)
            // Another daemon of the fleet may refresh the name; its answer is in the store when these expire.
            if store.isOn, let left = known.map(\.left).min(), left > 0,
                known.allSatisfy({ due($0) >= Self.shortestRefresh })
            {
                next = min(left, next)
            }
        }
        schedule(.keepAlive(index), Int(next), at: now)
    }

    /// The cached answers for A and AAAA of a name, or of the target of its aliases, under which they are cached.
    private func known(_ name: Name, at now: Tick) -> [DNSCache.Held] {
        var name = name
        while case .alias(of: let target, by: _) = policy.route(name, .a) { name = target }
        return knownOfBoth(name, for: .plain, at: now)
    }

    /// The least seconds between two refreshes, and the most between two looks into the cache.
    private static var shortestRefresh: UInt32 { 60 }
}

// MARK: - Readiness

extension Forwarder {
    /// Whether questions fail for more than one name: see ``Readiness``.
    public var hasLostServers: Bool { readiness.isLost(answers: mainAnswers) }

    /// Asks a question of the daemon's own when it is uncertain whether servers answer.
    public mutating func checkReadiness(at now: Tick) {
        guard readiness.isInDoubt(answers: mainAnswers) else { return }
        receive(Readiness.own, nil, of: .daemon, at: now)
    }

    /// Notes that no server has answered a flight.
    mutating func noteUnanswered(_ flight: Flight) {
        let judged = judgedGroups
        guard flight.route.contains(where: { judged.contains($0.group) && desk.rules.hasServers($0) }) else { return }
        readiness.failed(flight.key, answers: mainAnswers)
    }

    /// The group with servers that is asked first for the names that no pattern takes, and the groups with servers that
    /// are asked when the group fails, in order.
    public var mainRoute: [GroupID] {
        let steps = policy.mainSteps.filter { desk.rules.hasServers($0) }
        return steps.enumerated().filter { $0 == 0 || $1.after.contains(.failure) }.map(\.element.group)
    }

    /// The groups whose servers decide on readiness: those of ``mainRoute``; if there are none, the groups for the
    /// other names, except the group for private names.
    private var judgedGroups: [GroupID] {
        let main = mainRoute
        return main.isEmpty ? desk.ids.filter { policy.leads(to: $0) && $0 != policy.privateNames } : main
    }

    /// The number of answers from servers of these groups since the start.
    var mainAnswers: UInt64 {
        judgedGroups.reduce(0) { sum, group in
            desk.overview(of: group, thenTry: []).servers.reduce(sum) { $0 &+ $1.health.answers }
        }
    }
}

// MARK: - Names sent to accounts

extension Forwarder {
    /// For each account, names in the requests that were sent to it since the start, counted each time. The count of an
    /// account that was removed stays, and goes on if the account returns.
    public var namesSent: [GroupID: UInt64] { desk.namesSent }
}

// MARK: - Trials of addresses

/// `[cache] rank`: addresses are sorted by the speed at which they answered a TCP connection.
///
/// No answer waits for a trial. An answer is given and cached as it came, or in the order known from an earlier trial;
/// its addresses are tried meanwhile, and then sorted in the cached answer.
extension Forwarder {
    /// Sorts an answer's addresses if their order is known; else begins a trial.
    mutating func rank(_ answer: inout Answer, of name: NameKey, _ type: RecordType, at now: Tick) {
        guard let ranked = policy.ranked, type == .a || type == .aaaa, let port = ranked.port(of: name.name) else {
            return
        }
        let addresses = answer.addresses
        let subject = AddressRanks.Subject(name: name, type: type, port: port)
        if let order = ranks.order(of: subject, at: now) { _ = answer.sortAddresses(by: order.rank) }
        guard let trial = ranks.begin(subject, addresses, at: now) else { return }
        deadlines.insert(.trial(trial.id), at: now.advanced(milliseconds: AddressRanks.patience))
        act(.trial(.begin(TrialID(trial.id), trial.addresses.map { Endpoint($0, port: port) })))
    }

    /// One of the endpoints of ``TrialAction/begin(_:_:)`` has taken or refused the connection.
    /// - Parameter number: The index of the endpoint in the trial.
    public mutating func tried(_ trial: TrialID, _ number: Int, hasAnswered: Bool, at now: Tick) {
        guard ranks.isUnderWay(trial.id) else { return }
        if hasAnswered { counters.rankAnswered += 1 }
        if ranks.ended(trial.id, number, hasAnswered: hasAnswered) { endTrial(trial.id, at: now) }
    }

    /// This machine is short of a resource for a trial: it says nothing of the addresses, and the next answer begins
    /// another trial.
    public mutating func abandon(_ trial: TrialID) {
        if ranks.abandon(trial.id) { act(.trial(.end(trial))) }
    }

    /// All addresses have answered or failed, or the time is over: sorts the cached answers.
    mutating func endTrial(_ id: TableID, at now: Tick) {
        guard let (subject, order, isWaiting) = ranks.end(id, at: now) else { return }
        counters.rankFailed += UInt64(order.failed.count)
        if isWaiting { act(.trial(.end(TrialID(id)))) }
        let (name, type) = (subject.name.name, subject.type)
        // The settings may have changed.
        guard policy.ranked?.port(of: name) == subject.port else { return }
        sortKnown(name, type, at: now, by: order.rank)
        // AAAA records that are made of an account's addresses are tried as these.
        let made = AddressRanks.Subject(name: subject.name, type: .aaaa, port: subject.port)
        if type == .a, let prefix = policy.synthesis, ranks.order(of: made, at: now) == nil {
            sortKnown(name, .aaaa, at: now) { order.rank(prefix.ipv4(in: $0) ?? $0) }
        }
    }

    /// Sorts the addresses of a name in the cached answers.
    private func sortKnown(_ name: Name, _ type: RecordType, at now: Tick, by rank: (IPAddress) -> Int) {
        for audience in Audience.ofClients {
            guard let known = cache.find(name, type: type, for: audience, at: now.seconds)?.answer else { continue }
            var sorted = known
            guard sorted.sortAddresses(by: rank) else { continue }
            cache.replaceBody(of: known, by: sorted.body, to: name, type: type, for: audience)
        }
    }

    /// How the addresses of a name are sorted; nil if they are not.
    func ranking(_ name: Name, _ type: RecordType, at now: Tick) -> Explanation.Ranking? {
        guard type == .a || type == .aaaa, let port = policy.ranked?.port(of: name) else { return nil }
        let subject = AddressRanks.Subject(name: NameKey(name), type: type, port: port)
        return Explanation.Ranking(port: port, isKnown: ranks.order(of: subject, at: now) != nil)
    }
}
