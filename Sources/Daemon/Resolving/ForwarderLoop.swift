import Base
import Configuration
import Counters
import DNSCache
import DNSWire
import Forwarding
import Log
import Transport
import Upstreams

/// Runs the forwarder: one loop that passes it questions, outcomes and the time, and carries out its actions.
///
/// There is one for all listeners, so that equal questions share a flight and names share a request.
final class ForwarderLoop: @unchecked Sendable {
    // Unchecked: private members are used only on the loop, or before it starts; all others from any thread.
    let loop: EventLoop
    /// Counts the misses that were submitted and have not begun.
    let queue = MissQueue()
    /// The first stage of questions, in the listeners.
    let frontend: CurrentFrontend
    /// The clients that may not ask.
    let strangers: Strangers
    /// The counts of answers that did not come from a listener, and of what servers send; the transport of these
    /// answers is not distinguished.
    let tally = Tally(.udp)
    let notes = WatchNotes()
    /// The sockets that the loop reads beside the listeners.
    var readers = LoopReaders()
    private var forwarder: Forwarder
    private let inEffect: SettingsInEffect
    private let upstreams: UpstreamRegistry
    private let trials: AddressTrials
    private let report: Report
    private var clients = WaitingClients()
    /// The actions of one turn while they are carried out. Empty in between; retained for its memory.
    private var actions: [Action] = []
    private var outages = Outages()
    private var hasNetwork = Routes.families().map { $0.ipv4 || $0.ipv6 } ?? true
    /// Whether a change of the network is not acted on yet.
    private var hasNetworkChanged = false
    private var networkPace = NetworkPace()
    private var outgoing: TurnReplies
    private var paced = PacedReplies<(client: Client, answer: Answer, age: Reply.Age)>()
    /// Work from before the cache's file was read, a matter of milliseconds: misses that may be in the file, and other
    /// settings. Nil after that.
    private var early: [() -> Void]? = []
    /// Until when the stop waits for the last answers, with its callback.
    private var drain: (until: UInt64, done: () -> Void)?

    /// A loop without upstreams, until settings are applied.
    /// - Parameter generations: The generations of the store's entries; nil if no generation outlives a restart.
    init(
        loop: EventLoop, cache: DNSCache, local: LocalServers, lookup: ServerLookup, generations: Generations? = nil,
        report: Report
    ) {
        (self.loop, self.report) = (loop, report)
        // The counts of long replies to clients of other hosts.
        let largeReplies = LargeReplies()
        outgoing = TurnReplies(largeReplies)
        strangers = Strangers { report.stranger($0, hasConnected: $1) }
        frontend = CurrentFrontend(
            QueryFrontend(
                cache: cache, Settings().listen, queue: queue, largeReplies: largeReplies, strangers: strangers))
        inEffect = SettingsInEffect(
            loop: loop, cache: cache, frontend: frontend, local: local, lookup: lookup, generations: generations,
            tally: tally, report: report)
        (upstreams, trials) = (inEffect.upstreams, AddressTrials(loop: loop))
        forwarder = Forwarder(
            policy: Policy(
                groups: [], routes: [:], rules: DomainRules(), otherwise: .fallback, negativeTTL: Timing().negativeTTL),
            timing: Timing(), groups: [], cache: cache)
        inEffect.change = { [unowned self] in forwarder.change($0, at: $1) }
        inEffect.store.handle = { [unowned self] in forwarder.handle($0, wall: WallClock.unixSeconds(), at: now) }
        upstreams.settle = { [unowned self] in settle($0, $1, toRepeat: $2) }
        upstreams.wrote = { [unowned self] in forwarder.wrote($0) }
        upstreams.lost = { [unowned self] in forwarder.lost($0) }
        upstreams.lookup.ask = { [unowned self] in forwarder.findServer($0, $1, for: $2, at: now) }
        trials.tried = { [unowned self] in forwarder.tried($0, $1, hasAnswered: $2, at: now) }
        trials.short = { [unowned self] in forwarder.abandon($0) }
        loop.deadlineReached = { [unowned self] in expire(at: now) }
        loop.turnEnded = { [unowned self] in endTurn() }
    }

    private var now: Tick { Tick(nanoseconds: Clock.now()) }

    /// Takes over misses of the cache. From any thread.
    /// - Parameters:
    ///   - misses: Each has entered the ``queue``.
    ///   - here: Whether the caller has no other work: if the loop is at rest, the caller's thread runs the turn. A
    ///     lone lookup over https then takes 5 system calls and 100 µs of CPU, instead of 8 and 109.
    func submit(_ misses: [Miss], here: Bool = false) {
        let work: @Sendable () -> Void = { [self] in
            if early == nil { receive(misses) } else { hold(misses) }
        }
        if here { loop.perform(work) } else { loop.submit(work) }
    }

    /// Holds misses until the cache's file is read, except those that the daemon answers itself.
    private func hold(_ misses: [Miss]) {
        var (known, others): ([Miss], [Miss]) = ([], [])
        for miss in misses {
            let question = miss.client.question
            if case .answer = forwarder.policy.route(question.name(in: miss.client.query.span), question.type) {
                known.append(miss)
            } else {
                others.append(miss)
            }
        }
        if !known.isEmpty { receive(known) }
        if !others.isEmpty { early?.append { [self] in receive(others) } }
    }

    private func receive(_ misses: [Miss]) {
        Self.receive(misses, by: &forwarder, &clients, queue, &readers, at: now)
    }

    /// Static, so that this object's mutable properties are accessed once for all misses: each access costs a tenth of
    /// a hit.
    private static func receive(
        _ misses: [Miss], by forwarder: inout Forwarder, _ clients: inout WaitingClients, _ queue: MissQueue,
        _ readers: inout LoopReaders, at now: Tick
    ) {
        // By index: iterating over the misses themselves would copy each of them.
        for index in misses.indices {
            let client = misses[index].client
            let question = client.question
            queue.leave(client.asker.source)
            forwarder.receive(
                question.name(in: client.query.span), question.type, for: Audience(of: question),
                from: misses[index].isRefresh ? nil : clients.insert(client), by: client.asker,
                recursionDesired: question.recursionDesired, at: now)
            readers.step()
        }
    }

    /// The cache's file was read, or there is none: from now on misses that have waited are looked up, and so are the
    /// names to look up at the start. From any thread; only the first call counts.
    func cacheIsRead() {
        loop.submit { [self] in
            guard let work = early else { return }
            early = nil
            let wanted = inEffect.settings.cache
            forwarder.change(.wanted(preResolve: wanted.preResolve, keepAlive: wanted.keepAliveDomains), at: now)
            for work in work { work() }
        }
    }

    /// Makes the parts of new settings that take time or can fail; see ``SettingsInEffect``. From any thread.
    func prepare(
        _ new: Settings, after old: Settings?, _ numbers: inout GroupNumbers, _ provenance: Provenance
    ) throws(StartFailure) -> SettingsInEffect.Prepared {
        try inEffect.prepare(new, after: old, &numbers, provenance)
    }

    /// Applies the first settings, before the loop starts.
    func begin(_ prepared: SettingsInEffect.Prepared) {
        inEffect.takeLinks()
        inEffect.apply(prepared)
        readRoutesLater(at: now)
    }

    /// Applies other settings in one turn, after the cache's file was read. From any thread.
    /// - Parameter done: Called in that turn.
    func apply(_ prepared: SettingsInEffect.Prepared, _ done: @escaping @Sendable () -> Void) {
        loop.submit { [self] in
            let work = { [self] in
                inEffect.apply(prepared)
                readRoutesLater(at: now)
                done()
            }
            if early == nil { work() } else { early?.append(work) }
        }
    }

    /// Forgets all knowledge about some names, one scope in a turn. From any thread.
    /// - Parameter done: Called on the loop, with the number of answers that were in the cache.
    func forget(_ scopes: ArraySlice<NameScope>, _ sum: Int = 0, _ done: @escaping @Sendable (Int) -> Void) {
        guard let scope = scopes.first else { return done(sum) }
        loop.submit { [self] in forget(scopes.dropFirst(), sum + forwarder.forget(scope, at: now), done) }
    }

    /// See ``Forwarder/checkReadiness(at:)``. From any thread.
    func checkReadiness() { loop.submit { [self] in forwarder.checkReadiness(at: now) } }

    /// Shows the forwarder and its surroundings. On the loop.
    /// - Parameter see: A closure that must not change the forwarder.
    func look<Value>(_ see: (inout Forwarder, SettingsInEffect) -> Value) -> Value { see(&forwarder, inEffect) }

    /// Whether the cache's file was read, so that questions are accepted. On the loop.
    var isOpen: Bool { early == nil }

    /// This machine's addresses or routes have changed. Call on the loop.
    func networkChanged() {
        let now = now
        hasNetworkChanged = true
        if networkPace.happened(at: now) { applyNetworkChange(at: now) }
    }

    /// Renews all that depends on addresses and routes: at once, and again if a lack of descriptors hides the routes,
    /// as soon as they can be read.
    private func applyNetworkChange(at now: Tick) {
        let routes = Routes.families()
        guard routes != nil || hasNetworkChanged else { return networkPace.wait(at: now) }
        hasNetworkChanged = false
        report.networkChanged()
        if let routes, (routes.ipv4 || routes.ipv6) != hasNetwork {
            hasNetwork.toggle()
            report.network(isGone: !hasNetwork)
        }
        inEffect.networkChanged(at: now)
        readRoutesLater(at: now)
    }

    /// Reads routes again later, if they could not be read for a lack of descriptors.
    private func readRoutesLater(at now: Tick) {
        if inEffect.translation.areRoutesUnseen { networkPace.wait(at: now) }
    }

    /// Reads no socket any more, and calls `done` on the loop as soon as no client waits, and after `nanoseconds` at
    /// the latest.
    func drain(within nanoseconds: UInt64, _ done: @escaping @Sendable () -> Void) {
        loop.submit { [self] in (drain, readers) = ((Clock.now() + nanoseconds, done), LoopReaders()) }
    }

    /// Closes the connections to servers and stops the loop, both at the very end of a turn: no work comes in between,
    /// or after, that would open new ones. From any thread.
    /// - Parameter stopped: Called once that is done.
    func stop(_ stopped: @escaping @Sendable () -> Void) {
        drain(within: 0) { [self] in
            close()
            loop.stop(stopped)
        }
    }

    func close() {
        inEffect.close()
        trials.close()
        // A client over TCP retains its listener, which retains this loop: a client without an answer would retain all
        // of them.
        (clients, paced, early) = (WaitingClients(), PacedReplies(), nil)
    }

    private func settle(_ id: QueryID, _ outcome: Outcome, toRepeat: Bool) {
        if case .addresses(let results, _) = outcome, inEffect.accounts.logs(id.group) {
            report.lookup(results, at: forwarder.name(of: id.group))
        }
        let now = now
        forwarder.settle(id, outcome, toRepeat: toRepeat, at: now)
        readers.step()
        if case .failed = outcome { failed(id.group, at: now) }
    }

    /// A query has failed, or was not answered in time.
    private func failed(_ group: GroupID, at now: Tick) {
        inEffect.accounts.failed(group, forwarder.overview(of: group).servers, at: now)
    }

    private func expire(at now: Tick) {
        if networkPace.isDue(at: now) { applyNetworkChange(at: now) }
        forwarder.expire(at: now)
        inEffect.expire(at: now)
    }

    private var nextDeadline: Tick? {
        var next = forwarder.nextDeadline.orEarlier(inEffect.nextDeadline)
        if let drain { next = next.orEarlier(Tick(nanoseconds: drain.until)) }
        if !paced.isEmpty { next = next.orEarlier(paced.nextDeadline) }
        return next.orEarlier(networkPace.nextDeadline)
    }

    private func endTurn() {
        let now = now
        while true {
            forwarder.endTurn(at: now)
            forwarder.takeActions(into: &actions)
            // Queries that fail at once are settled meanwhile, which may add actions.
            if actions.isEmpty, !upstreams.outbox.send() { break }
            perform(&actions, &clients, &outgoing, at: now)
        }
        if !paced.isEmpty {
            for reply in paced.release(at: now) { outgoing.reply(to: reply.client, reply.answer, reply.age, at: now) }
        }
        outgoing.flush()
        readers.endTurn()
        trials.endTurn()
        upstreams.endTurn()
        let haveFailed = outages.haveFailed(forwarder.failedQueries)
        if haveFailed || !outages.out.isEmpty {
            let examined =
                haveFailed ? forwarder.groupOverviews : outages.out.map { forwarder.overview(of: $0) }
            let changed = outages.update(examined)
            if !changed.isEmpty {
                let groups = forwarder.groupOverviews
                for group in changed { report.outage(of: group, among: groups, out: outages.out) }
            }
        }
        loop.setDeadline(nextDeadline?.nanoseconds)
        let isIdle = forwarder.flightsUnderWay == 0 && early?.isEmpty ?? true && paced.isEmpty
        if let drain, isIdle || now.nanoseconds >= drain.until {
            self.drain = nil
            drain.done()
        }
    }

    /// Carries out the actions in order, and empties the list. The parameters are this object's properties, accessed
    /// once for all actions as in ``receive(_:)``.
    private func perform(
        _ actions: inout [Action], _ clients: inout WaitingClients, _ outgoing: inout TurnReplies, at now: Tick
    ) {
        // Taken from the end, an action is moved; iterating over the list would copy each.
        actions.reverse()
        while let action = actions.popLast() {
            readers.step()
            switch action {
            case .reply(let numbers, let answer, let age, by: let answerer, let way):
                for number in numbers {
                    if number < 0 {
                        upstreams.lookup.answered(
                            number, answer, by: forwarder.words(of: answerer),
                            isShort: answerer == .noServer && answer.extendedErrors.first == .notReady)
                        continue
                    }
                    let client = clients.remove(number)
                    let took = now.nanoseconds &- min(now.nanoseconds, client.arrived.nanoseconds)
                    let isHeld =
                        !client.asker.isProven
                        && paced.take((client, answer, age), to: client.asker.source, waited: took, at: now) == nil
                    if !isHeld { outgoing.reply(to: client, answer, age, at: now) }
                    tally.answered(answer.head.responseCode)
                    tally.took(took)
                    if notes.isWatched { notes.note(client, answer, answerer, way, took, forwarder) }
                }
            case .ask(let id, let server, let ask):
                guard let upstream = upstreams[id.group] else {
                    settle(id, .failed(Failure(.unreachable, "it is no longer configured")), toRepeat: false)
                    continue
                }
                upstream.ask(id, server, ask, at: now)
            case .askAgain(let id): upstreams[id.group]?.askAgain(id)
            case .cancel(let id, let isOverdue):
                upstreams[id.group]?.cancel(id, isOverdue: isOverdue)
                if isOverdue { failed(id.group, at: now) }
            case .trial(let action): trials.perform(action)
            case .report(let event):
                report.event(event, sessions: inEffect.accounts.sessions) { forwarder.overview(of: $0) }
            case .reportLookup(let lookup):
                inEffect.accounts.add(lookup)
                if inEffect.accounts.logs(lookup.group) { report.lookup(lookup, at: forwarder.name(of: lookup.group)) }
            case .shared(let action): inEffect.store.upstream?.perform(action, wall: WallClock.unixSeconds())
            }
        }
    }
}
