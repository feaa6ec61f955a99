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

/// The shell around the brain: one loop that brings it questions, outcomes and the time, and carries out what it says.
///
/// One resolver serves all listeners, so that equal questions share a flight and names share a request.
final class ForwarderLoop: @unchecked Sendable {
    // Unchecked: everything but `loop` and `submit` is used on the loop alone, or before it starts.
    let loop: EventLoop
    var forwarder: Forwarder
    private var clients = WaitingClients()
    /// What holds at present: see ``apply(_:)``.
    var settings = Settings()
    var numbers = GroupNumbers()
    /// Nil before the first settings.
    var names: NameLists?
    /// The servers of HTTPDNS: those of `dnsIp`, until `confIp` gives others.
    var services: [Server] = []
    let carriers: Carriers
    let local: LocalServers
    let cache: DNSCache
    let report: Report
    /// Follows the files of names.
    var namesWatch: FileWatch?
    /// Told when what the cache's file depends on is another.
    var contextChanged: (UInt64) -> Void = { _ in }
    /// Of the answers that did not come from a listener; what they travelled by is not told apart.
    let tally = Tally(.udp)
    /// `confIp` and `enableReport`, on the same loop.
    var serviceList: ServiceList?
    var reporter: AbnormalReporter?
    var outages = Outages()
    /// A query may have failed since that was last looked at.
    var isOutageDue = false
    private var hasNetwork = Routes.leadOut
    private var outgoing = TurnReplies()

    /// What came before the cache's file was read, a matter of milliseconds, and may be in it; nil once it was.
    private var early: [Miss]? = []
    /// Other settings that came so early.
    private var deferred: [() -> Void] = []
    /// Misses that were submitted and not taken on yet.
    let queue = MissQueue()
    /// When waiting for the last answers ends, and who is told.
    private var drain: (until: UInt64, done: () -> Void)?

    /// With nobody to ask, until settings are applied.
    /// - Parameter local: on the same loop.
    init(loop: EventLoop, cache: DNSCache, local: LocalServers, lookup: ServerLookup, report: Report) {
        (self.loop, self.cache, self.local, self.report) = (loop, cache, local, report)
        carriers = Carriers(loop: loop, lookup)
        forwarder = Forwarder(
            policy: Policy(
                groups: [], routes: [:], rules: DomainRules(), otherwise: .fallback, negativeTTL: Timing().negativeTTL),
            timing: Timing(), groups: [], cache: cache)
        local.serversChanged = { [unowned self] in replaceResolvers() }
        local.hostsChanged = { [unowned self] in
            forwarder.change(.hosts($0), at: Tick(nanoseconds: Clock.now()))
        }
        carriers.settle = { [unowned self] in settle($0, $1, toRepeat: $2) }
        loop.deadlineReached = { [unowned self] in deadlineReached() }
        loop.turnEnded = { [unowned self] in endTurn() }
    }

    /// Takes over what the cache could not answer. From any thread.
    /// - Parameters:
    ///   - misses: in the ``queue``, but for those that are refreshes.
    ///   - here: the caller has nothing else to do: if the loop is at rest, its thread asks upstream itself.
    func submit(_ misses: [Miss], here: Bool = false) {
        var misses = misses
        misses.removeAll { $0.isRefresh && !queue.enterToRefresh($0.client.source) }
        let taken = misses
        let work: @Sendable () -> Void = { [self] in
            if early == nil { receive(taken) } else { hold(taken) }
        }
        if here { loop.perform(work) } else { loop.submit(work) }
    }

    /// Until the cache's file is read. It says nothing about what the daemon answers by itself, so that need not wait.
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

    /// For all of a batch what changes is looked up in this object once: each time costs what a tenth of a hit does.
    private static func receive(
        _ misses: [Miss], by forwarder: inout Forwarder, _ clients: inout WaitingClients, _ queue: MissQueue,
        at now: Tick
    ) {
        for miss in misses {
            let client = miss.client
            let (question, source) = (client.question, client.source)
            queue.leave(source)
            forwarder.receive(
                question.name(in: client.query.span), question.type, for: Audience(of: question),
                from: miss.isRefresh ? nil : clients.insert(client), of: source,
                recursionDesired: question.recursionDesired, at: now)
        }
    }

    /// What the cache's file holds is known: questions are taken on. On the loop.
    var isOpen: Bool { early == nil }

    /// Begins; what the cache does not know has to wait for ``cacheIsRead(_:)``.
    func start() {
        loop.start()
    }

    /// The cache knows what its file holds, or there is none: questions that it does not know are taken on, and what is
    /// wanted before anybody asks is looked up. From any thread; only the first time counts.
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

    /// Does work on the loop that what the cache's file holds must not come behind. From any thread.
    func withCacheRead(_ work: @escaping @Sendable () -> Void) {
        loop.submit { [self] in
            if early == nil { work() } else { deferred.append(work) }
        }
    }

    /// This machine's addresses or routes have changed; on the loop.
    func networkChanged() {
        let now = Tick(nanoseconds: Clock.now())
        report.networkChanged()
        if Routes.leadOut != hasNetwork {
            hasNetwork.toggle()
            report.network(isGone: !hasNetwork)
        }
        carriers.networkChanged(at: now)
        forwarder.change(.families(Families(settings)), at: now)
        forwarder.change(.network, at: now)
        serviceList?.networkChanged(at: now)
    }

    /// Calls `done` on the loop as soon as nobody waits for an answer any more, and after `nanoseconds` at the latest.
    func drain(within nanoseconds: UInt64, _ done: @escaping @Sendable () -> Void) {
        loop.submit { [self] in drain = (Clock.now() + nanoseconds, done) }
    }

    func close() {
        local.stop()
        namesWatch?.stop()
        carriers.close()
        serviceList?.close()
        reporter?.close()
    }

    private func settle(_ id: QueryID, _ outcome: Outcome, toRepeat: Bool) {
        if id.group == .httpdns, settings.httpdns?.debug ?? false { report.lookup(outcome) }
        let now = Tick(nanoseconds: Clock.now())
        if Self.hasFailed(id, outcome, toRepeat, &forwarder, at: now) { isOutageDue = true }
        guard id.group == .httpdns, case .failed = outcome, let serviceList else { return }
        if forwarder.overview(of: .httpdns).servers.allSatisfy({ $0.health.consecutiveFailures > 0 }) {
            serviceList.serversFailed(at: now)
        }
    }

    private func deadlineReached() {
        let now = Tick(nanoseconds: Clock.now())
        isOutageDue = true
        forwarder.expire(at: now)
        carriers.expire(at: now)
        serviceList?.expire(at: now)
        reporter?.expire(at: now)
    }

    private var nextDeadline: Tick? {
        forwarder.nextDeadline.orEarlier(carriers.nextDeadline).orEarlier(serviceList?.nextDeadline)
            .orEarlier(reporter?.nextDeadline).orEarlier(drain.map { Tick(nanoseconds: $0.until) })
    }

    private func endTurn() {
        let now = Tick(nanoseconds: Clock.now())
        while true {
            let actions = Self.takeActions(of: &forwarder, at: now)
            // What fails at once is settled meanwhile, and leaves more to do.
            if actions.isEmpty { break }
            perform(actions, &clients, &outgoing, at: now)
        }
        outgoing.flush()
        if isOutageDue { lookForOutages() }
        loop.setDeadline(nextDeadline?.nanoseconds)
        let isIdle = forwarder.flightsUnderWay == 0 && early?.isEmpty ?? true
        if let drain, isIdle || now.nanoseconds >= drain.until {
            self.drain = nil
            drain.done()
        }
    }

    private static func takeActions(of forwarder: inout Forwarder, at now: Tick) -> [Action] {
        forwarder.endTurn(at: now)
        return forwarder.takeActions()
    }

    /// Whether a query has failed by this outcome.
    private static func hasFailed(
        _ id: QueryID, _ outcome: Outcome, _ toRepeat: Bool, _ forwarder: inout Forwarder, at now: Tick
    ) -> Bool {
        let before = forwarder.failedQueries
        forwarder.settle(id, outcome, toRepeat: toRepeat, at: now)
        return forwarder.failedQueries != before
    }

    /// - Parameters:
    ///   - clients, outgoing: this object's, looked up once for all.
    private func perform(
        _ actions: [Action], _ clients: inout WaitingClients, _ outgoing: inout TurnReplies, at now: Tick
    ) {
        for action in actions {
            switch action {
            case .reply(let numbers, let answer, let age):
                for number in numbers {
                    let client = clients.remove(number)
                    Self.reply(to: client, answer, age, by: &outgoing)
                    tally.answered(answer.head.responseCode)
                    tally.took(now.nanoseconds &- min(now.nanoseconds, client.arrived.nanoseconds))
                }
            case .ask(let id, let server, let ask):
                guard let upstream = carriers[id.group] else {
                    settle(id, .failed(Failure(.unreachable, "it is no longer configured")), toRepeat: false)
                    continue
                }
                upstream.ask(id, server, ask, at: now)
            case .askAgain(let id): carriers[id.group]?.askAgain(id)
            case .cancel(let id): carriers[id.group]?.cancel(id)
            case .report(let event): report.event(event) { forwarder.overview(of: $0) }
            case .reportLookup(let lookup): reporter?.add(lookup)
            }
        }
    }

    private static func reply(
        to client: Client, _ answer: Answer, _ age: Reply.Age, by outgoing: inout TurnReplies
    ) {
        switch client.way {
        case .datagram(let socket, let address, let source):
            outgoing.add(through: socket, to: address, from: source) { room in
                Reply.write(
                    answer, age: age, to: client.question, query: client.query.span,
                    limit: Reply.udpLimit(client.question, isLoopback: address.address.isLoopback), into: &room)
            }
        case .stream(_, let deliver):
            var bytes = [UInt8](
                repeating: 0, count: min(Int(UInt16.max), answer.body.count + mostAddedOctets))
            var room = bytes.mutableSpan
            let length = Reply.write(
                answer, age: age, to: client.question, query: client.query.span, limit: Int(UInt16.max), into: &room)
            bytes.removeLast(bytes.count - length)
            deliver(bytes)
        }
    }

    /// A header and an OPT record with an extended error, beside the body; and never less than the least limit.
    private static let mostAddedOctets = 512
}
