import Base
import Configuration
import Counters
import DNSCache
import DNSWire
import Forwarding
import Log
import Synchronization
import Transport
import Upstreams

/// Runs the forwarder: one loop that tells it of questions, outcomes and the time, and carries out its actions.
///
/// There is one for all listeners, so that equal questions share a flight and names share a request.
final class ForwarderLoop: @unchecked Sendable {
    // Unchecked: everything but `loop` and `submit` is used on the loop alone, or before it starts.
    let loop: EventLoop
    var forwarder: Forwarder
    private var clients = WaitingClients()
    /// The actions of one turn while they are carried out. Empty in between; kept for its memory.
    private var actions: [Action] = []
    /// The settings in effect: see ``apply(_:)``.
    var settings = Settings()
    var numbers = GroupNumbers()
    /// Where the settings came from.
    var provenance = Provenance()
    /// The servers of accounts: those of `dnsIp`, until `confIp` gives others.
    var services: [GroupID: [Server]] = [:]
    let carriers: Carriers
    private let trials: AddressTrials
    let local: LocalServers
    let nameFiles: NameFiles
    let cache: DNSCache
    let report: Report
    /// Called when what settings decide about answers has changed, as the cache's file must know.
    var contextChanged: (AnswerContext) -> Void = { _ in }
    /// The counts of answers that did not come from a listener; their transport is not distinguished.
    let tally = Tally(.udp)
    let notes = WatchNotes()
    /// `confIp` and `enableReport`, on the same loop.
    var serviceLists: [GroupID: ServiceList] = [:]
    var reporters: [GroupID: AbnormalReporter] = [:]
    /// The accounts whose lookups are logged.
    var debugged: Set<GroupID> = []
    /// The store of `[sharedCache]`; nil: nothing is shared.
    var store: StoreUpstream?
    /// Of its entries; set before settings are applied.
    var generations: Generations?
    var outages = Outages()
    /// Whether a query may have failed since outages were last looked for.
    var isOutageDue = false
    var hasNetwork = Routes.leadOut
    var networkPace = NetworkPace()
    /// What clients of other hosts have had of long replies.
    let largeReplies: LargeReplies
    private var outgoing: TurnReplies
    private var paced = PacedReplies<(client: Client, answer: Answer, age: Reply.Age)>()

    /// The misses that came before the cache's file was read, a matter of milliseconds, and may be in it; nil after
    /// that.
    private var early: [Miss]? = []
    /// Changes of settings that came before then.
    private var deferred: [() -> Void] = []
    /// Counts the misses that were submitted and not begun yet.
    let queue = MissQueue()
    /// Until when the stop waits for the last answers, and its callback.
    private var drain: (until: UInt64, done: () -> Void)?

    /// Without upstreams, until settings are applied.
    /// - Parameter local: on the same loop.
    init(loop: EventLoop, cache: DNSCache, local: LocalServers, lookup: ServerLookup, report: Report) {
        (self.loop, self.cache, self.local, self.report) = (loop, cache, local, report)
        largeReplies = LargeReplies()
        outgoing = TurnReplies(largeReplies)
        carriers = Carriers(loop: loop, lookup, report: report)
        trials = AddressTrials(loop: loop)
        nameFiles = NameFiles(loop: loop, report: report)
        forwarder = Forwarder(
            policy: Policy(
                groups: [], routes: [:], rules: DomainRules(), otherwise: .fallback, negativeTTL: Timing().negativeTTL),
            timing: Timing(), groups: [], cache: cache)
        local.serversChanged = { [unowned self] in replaceResolvers() }
        nameFiles.changed = { [unowned self] in replaceNames($0) }
        local.hostsChanged = { [unowned self] in
            forwarder.change(.hosts($0, others: $1), at: Tick(nanoseconds: Clock.now()))
        }
        carriers.settle = { [unowned self] in settle($0, $1, toRepeat: $2) }
        trials.tried = { [unowned self] in
            forwarder.tried($0, $1, hasAnswered: $2, at: Tick(nanoseconds: Clock.now()))
        }
        loop.deadlineReached = { [unowned self] in deadlineReached() }
        loop.turnEnded = { [unowned self] in endTurn() }
    }

    /// Takes over misses of the cache. From any thread.
    /// - Parameters:
    ///   - misses: each has a place in the ``queue``, except for refreshes.
    ///   - here: the caller has nothing else to do: if the loop is at rest, the caller's thread runs the turn.
    func submit(_ misses: [Miss], here: Bool = false) {
        var misses = misses
        if misses.contains(where: { $0.isRefresh }) {
            misses.removeAll { $0.isRefresh && !queue.enterToRefresh($0.client.source) }
        }
        let taken = misses
        let work: @Sendable () -> Void = { [self] in
            if early == nil { receive(taken) } else { hold(taken) }
        }
        if here { loop.perform(work) } else { loop.submit(work) }
    }

    /// Holds misses until the cache's file is read. Questions that the daemon answers itself do not depend on the file
    /// and go on.
    private func hold(_ misses: [Miss]) {
        var known: [Miss] = []
        for miss in misses {
            let question = miss.client.question
            if case .answer = forwarder.policy.route(question.name(in: miss.client.query.span), question.type) {
                known.append(miss)
            } else {
                early?.append(miss)
            }
        }
        if !known.isEmpty { receive(known) }
    }

    private func receive(_ misses: [Miss]) {
        Self.receive(misses, by: &forwarder, &clients, queue, at: Tick(nanoseconds: Clock.now()))
    }

    /// A static function, so that this object's changing properties are accessed once for the whole batch: each access
    /// costs a tenth of a hit.
    private static func receive(
        _ misses: [Miss], by forwarder: inout Forwarder, _ clients: inout WaitingClients, _ queue: MissQueue,
        at now: Tick
    ) {
        // By index: to walk over the misses themselves would copy each of them.
        for index in misses.indices {
            let client = misses[index].client
            let (question, source) = (client.question, client.source)
            queue.leave(source)
            forwarder.receive(
                question.name(in: client.query.span), question.type, for: Audience(of: question),
                from: misses[index].isRefresh ? nil : clients.insert(client), of: source, isProven: client.isProven,
                recursionDesired: question.recursionDesired, at: now)
        }
    }

    /// Whether the cache's file was read, so that questions are accepted. On the loop.
    var isOpen: Bool { early == nil }

    /// Begins; misses wait for ``cacheIsRead()``.
    func start() {
        loop.start()
    }

    /// The cache's file was read, or there is none: misses are looked up from now on, and the names to be looked up at
    /// the start are. From any thread; only the first call counts.
    func cacheIsRead() {
        loop.submit { [self] in
            guard let misses = early else { return }
            early = nil
            receive(misses)
            forwarder.change(
                .wanted(preResolve: settings.cache.preResolve, keepAlive: settings.cache.keepAliveDomains),
                at: Tick(nanoseconds: Clock.now()))
            for work in deferred { work() }
            deferred = []
        }
    }

    /// Does work on the loop that must come after the reading of the cache's file. From any thread.
    func withCacheRead(_ work: @escaping @Sendable () -> Void) {
        loop.submit { [self] in
            if early == nil { work() } else { deferred.append(work) }
        }
    }

    /// Calls `done` on the loop as soon as no client waits any more, and after `nanoseconds` at the latest.
    func drain(within nanoseconds: UInt64, _ done: @escaping @Sendable () -> Void) {
        loop.submit { [self] in drain = (Clock.now() + nanoseconds, done) }
    }

    func close() {
        local.stop()
        nameFiles.stop()
        carriers.close()
        trials.close()
        for list in serviceLists.values { list.close() }
        for reporter in reporters.values { reporter.close() }
        store?.close()
    }

    private func settle(_ id: QueryID, _ outcome: Outcome, toRepeat: Bool) {
        if !debugged.isEmpty, debugged.contains(id.group) {
            report.lookup(outcome, at: forwarder.name(of: id.group))
        }
        let now = Tick(nanoseconds: Clock.now())
        if Self.settleReturningFailure(id, outcome, toRepeat, &forwarder, at: now) { isOutageDue = true }
        guard case .failed = outcome, let serviceList = serviceLists[id.group] else { return }
        if forwarder.overview(of: id.group).servers.allSatisfy({ $0.health.consecutiveFailures > 0 }) {
            serviceList.serversFailed(at: now)
        }
    }

    private func deadlineReached() {
        let now = Tick(nanoseconds: Clock.now())
        isOutageDue = true
        if networkPace.isDue(at: now) { heedNetwork(at: now) }
        forwarder.expire(at: now)
        carriers.expire(at: now)
        for list in serviceLists.values { list.expire(at: now) }
        for reporter in reporters.values { reporter.expire(at: now) }
    }

    private var nextDeadline: Tick? {
        var next = forwarder.nextDeadline.orEarlier(carriers.nextDeadline)
        if !serviceLists.isEmpty { for list in serviceLists.values { next = next.orEarlier(list.nextDeadline) } }
        if !reporters.isEmpty { for reporter in reporters.values { next = next.orEarlier(reporter.nextDeadline) } }
        if let drain { next = next.orEarlier(Tick(nanoseconds: drain.until)) }
        if !paced.isEmpty { next = next.orEarlier(paced.nextDeadline) }
        if let due = networkPace.nextDeadline { next = next.orEarlier(due) }
        return next
    }

    private func endTurn() {
        let now = Tick(nanoseconds: Clock.now())
        while true {
            Self.takeActions(of: &forwarder, into: &actions, at: now)
            // Queries that fail at once are settled meanwhile, which may add actions.
            if actions.isEmpty, !carriers.outbox.send() { break }
            perform(&actions, &clients, &outgoing, at: now)
        }
        if !paced.isEmpty {
            for reply in paced.release(at: now) { outgoing.reply(to: reply.client, reply.answer, reply.age, at: now) }
        }
        outgoing.flush()
        trials.endTurn()
        carriers.endTurn()
        if isOutageDue { lookForOutages() }
        loop.setDeadline(nextDeadline?.nanoseconds)
        let isIdle = forwarder.flightsUnderWay == 0 && early?.isEmpty ?? true && paced.isEmpty
        if let drain, isIdle || now.nanoseconds >= drain.until {
            self.drain = nil
            drain.done()
        }
    }

    private static func takeActions(of forwarder: inout Forwarder, into actions: inout [Action], at now: Tick) {
        forwarder.endTurn(at: now)
        forwarder.takeActions(into: &actions)
    }

    /// Whether this outcome is a failed query.
    private static func settleReturningFailure(
        _ id: QueryID, _ outcome: Outcome, _ toRepeat: Bool, _ forwarder: inout Forwarder, at now: Tick
    ) -> Bool {
        let before = forwarder.failedQueries
        forwarder.settle(id, outcome, toRepeat: toRepeat, at: now)
        return forwarder.failedQueries != before
    }

    /// Carries out the actions in their order, and leaves the list empty.
    /// - Parameters:
    ///   - actions, clients, outgoing: this object's properties, accessed once for all actions.
    private func perform(
        _ actions: inout [Action], _ clients: inout WaitingClients, _ outgoing: inout TurnReplies, at now: Tick
    ) {
        // Taken from the end, an action is moved; to walk over the list would copy each.
        actions.reverse()
        while let action = actions.popLast() {
            switch action {
            case .reply(let numbers, let answer, let age, by: let answerer):
                for number in numbers {
                    let client = clients.remove(number)
                    let took = now.nanoseconds &- min(now.nanoseconds, client.arrived.nanoseconds)
                    let isHeld =
                        !client.isProven
                        && paced.take((client, answer, age), to: client.source, waited: took, at: now) == nil
                    if !isHeld { outgoing.reply(to: client, answer, age, at: now) }
                    tally.answered(answer.head.responseCode)
                    tally.took(took)
                    if notes.isWatched { note(client, answer.head.responseCode, answerer, took) }
                }
            case .ask(let id, let server, let ask):
                guard let upstream = carriers[id.group] else {
                    settle(id, .failed(Failure(.unreachable, "it is no longer configured")), toRepeat: false)
                    continue
                }
                upstream.ask(id, server, ask, at: now)
            case .askAgain(let id): carriers[id.group]?.askAgain(id)
            case .cancel(let id): carriers[id.group]?.cancel(id)
            case .trial(let action): trials.perform(action)
            case .report(let event): report.event(event) { forwarder.overview(of: $0) }
            case .reportLookup(let lookup): reporters[lookup.group]?.add(lookup)
            case .shared(let action): store?.perform(action, wall: WallClock.unixSeconds())
            }
        }
    }
}
