public import Base
public import Configuration
import DNSCache
import DNSWire
import Forwarding
import Log
import Names
import Transport
import Upstreams

/// Checks what the daemon depends on step by step, over the daemon's own code, and reports in plain words what works.
public final class Probe: @unchecked Sendable {
    // Unchecked: everything is used on the loop alone once it has started.
    private let loop: EventLoop
    private let upstreams: UpstreamRegistry
    private let httpdns: Settings.Group?
    private let asking: @Sendable (String) -> Void
    private let say: @Sendable (String) -> Void
    /// What the daemon would log of these settings at its start.
    private var remarks: [String] = []
    private var steps: [Step]
    /// The only group to be asked; nil: HTTPDNS, and then the local resolvers.
    private var only: UpstreamGroup?
    /// Finds servers whose host is a name.
    private var forwarder: Forwarder
    /// The deadline of the present step.
    private var deadline: Tick?
    private var current: (step: Step, number: UInt32, began: Tick)?
    private var number: UInt32 = 0
    /// The groups that have a server which answered.
    private var working: Set<GroupID> = []
    /// The first failure of each group, in the words of the log.
    private var failures: [GroupID: String] = [:]

    /// A server to be asked, with its group.
    private struct Step {
        let group: UpstreamGroup
        let server: Server
        let name: Name
    }

    /// The name to ask for if the configuration has none that fits.
    private static let anyName = Name("example.com")

    /// - Parameters:
    ///   - chosen: the name of the group to be asked. After `httpdns`, and without such a section in its place, the local
    ///     resolvers are asked, too.
    ///   - environment: where `http_proxy` and the like are looked for.
    ///   - asking: called on the loop with each server before it is asked, and which of how many it is.
    ///   - say: called on the loop with one line after the other; failures have the words of the daemon's log.
    public init(
        _ settings: Settings, group chosen: String = Settings.Group.httpdnsName, environment: [String: String] = [:],
        asking: @escaping @Sendable (String) -> Void = { _ in }, say: @escaping @Sendable (String) -> Void
    ) throws(StartFailure) {
        httpdns = settings.httpdns
        (self.asking, self.say) = (asking, say)
        let loop = try StartFailure.ofSystem { () throws(SystemError) in try EventLoop(label: "httpdnsd.probe") }
        self.loop = loop
        var numbers = GroupNumbers()
        numbers.add(settings)
        upstreams = UpstreamRegistry(loop: loop, ServerLookup(loop: loop, listening: settings.listen.addresses))
        upstreams.apply(settings, try UpstreamRegistry.Prepared(settings), numbers)
        let local = LocalReading(settings, listening: settings.listen.addresses, [.resolvers, .hosts])
        let (servers, loops) = local.fallback(of: settings)
        let services = settings.services(numbers)
        let any = settings.domains.intercept.first ?? Self.anyName ?? .root
        let described = UpstreamGroups(settings, numbers, services: services) { local.servers(of: $0) }
        let names = try NameLists(settings, numbers)
        forwarder = Forwarder(
            policy: Policy(settings, numbers, described, names, hosts: local.hosts ?? HostsTable()),
            timing: Timing(settings), groups: described.groups, cache: DNSCache(bytes: 1 << 20, seed: (0, 0)))
        steps = described.groups.flatMap { group in
            let named = settings.upstreams.first { $0.name == group.name }
            let name = named?.domains.lazy.compactMap(\.nameToAsk).first ?? any
            return group.servers.map { Step(group: group, server: $0, name: name) }
        }
        steps.removeAll { step in
            step.group.name != chosen && (chosen != Settings.Group.httpdnsName || step.group.id != .fallback)
        }
        remarks += settings.applyingProxy(in: environment).found.filter { $0.account == chosen }.map(\.text)
        if chosen != Settings.Group.httpdnsName {
            guard let group = steps.first?.group else {
                throw .setting(key: "upstreams.\(chosen)", "there is no such group with servers to be asked")
            }
            only = group
            return
        }
        if settings.httpdns == nil { remarks.append(Report.noService(settings)) }
        guard settings.isFallbackNeeded else { return }
        remarks += loops.map { Report.loop($0, $1) }
        if servers.isEmpty { remarks.append(Report.noLocalResolver) }
    }

    /// Takes all steps, one after the other.
    /// - Parameter done: called once at the end; with nil if questions can be answered as configured, else with what
    ///   does not work, what becomes of clients' questions, and the first reason.
    public func run(_ done: @escaping @Sendable (String?) -> Void) {
        upstreams.settle = { [unowned self] in settle($0, $1, toRepeat: $2) }
        upstreams.lookup.ask = { [unowned self] in forwarder.findServer($0, $1, for: $2, at: now) }
        upstreams.follow { [unowned self] in progressed($0) }
        loop.deadlineReached = { [unowned self] in deadlineReached() }
        loop.turnEnded = { [unowned self] in
            repeat {
                while current == nil, !steps.isEmpty { begin(steps.removeFirst()) }
            } while findServers() || upstreams.outbox.send()
            guard current == nil else { return setDeadline() }
            let trouble = conclude()
            upstreams.close()
            loop.stop { done(trouble) }
        }
        loop.start()
        loop.submit { [self] in
            for remark in remarks { say(remark) }
        }
    }

    /// Carries out what the forwarder wants for the servers that are looked up.
    /// - Returns: whether there was anything.
    private func findServers() -> Bool {
        forwarder.endTurn(at: now)
        let actions = forwarder.takeActions()
        for action in actions {
            switch action {
            case .ask(let id, let server, let ask): upstreams[id.group]?.ask(id, server, ask, at: now)
            case .askAgain(let id): upstreams[id.group]?.askAgain(id)
            case .cancel(let id): upstreams[id.group]?.cancel(id)
            case .reply(let numbers, let answer, _, by: let answerer):
                for number in numbers { upstreams.lookup.answered(number, answer, by: forwarder.words(of: answerer)) }
            default: break
            }
        }
        return !actions.isEmpty
    }

    private var now: Tick { Tick(nanoseconds: Clock.now()) }

    private func setDeadline() {
        loop.setDeadline(
            deadline.orEarlier(upstreams.nextDeadline).orEarlier(forwarder.nextDeadline)?.nanoseconds)
    }

    private func deadlineReached() {
        let now = now
        forwarder.expire(at: now)
        upstreams.expire(at: now)
        if let deadline, deadline <= now { timedOut() }
    }

    private func begin(_ step: Step) {
        number += 1
        let now = now
        current = (step, number, now)
        asking("\(who) (\(number) of \(Int(number) + steps.count))")
        deadline = now.advanced(milliseconds: step.group.timeout)
        let ask: Ask =
            step.group.carriesAddresses
            ? .addresses([step.name], .both) : .message(MessageQuestion(name: step.name, type: .a))
        upstreams[step.group.id]?.ask(QueryID(standalone: number, of: step.group.id), step.server, ask, at: now)
    }

    private func progressed(_ progress: StreamUpstream.Progress) {
        switch progress {
        case .connected: say("\(who): connected after \(elapsed) ms")
        case .secured(let version): say("\(who): \(version), certificate accepted after \(elapsed) ms")
        }
    }

    private func settle(_ id: QueryID, _ outcome: Outcome, toRepeat: Bool) {
        guard let current, id == QueryID(standalone: current.number, of: current.step.group.id) else {
            return forwarder.settle(id, outcome, toRepeat: toRepeat, at: now)
        }
        settle(outcome)
    }

    private func settle(_ outcome: Outcome) {
        guard let step = current?.step else { return }
        switch outcome {
        case .failed(let failure):
            let line = Report.fails(who, failure)
            if failures[step.group.id] == nil { failures[step.group.id] = line }
            say(line)
        case .addresses(let results):
            working.insert(step.group.id)
            say("\(who) answers after \(elapsed) ms: \(results.first?.words ?? "nothing about") \(step.name)")
        case .answer:
            working.insert(step.group.id)
            say("\(who) answers after \(elapsed) ms")
        }
        current = nil
    }

    /// The server that is asked now, by its name in the log.
    private var who: String {
        current.map { "\($0.step.group.id.title($0.step.group.name)) \($0.step.server)" } ?? "nobody"
    }

    private func timedOut() {
        guard let current else { return }
        let group = current.step.group
        upstreams[group.id]?.cancel(QueryID(standalone: current.number, of: group.id))
        settle(.failed(Failure(.timedOut, "no answer within \(group.timeout) ms")))
    }

    private var elapsed: Int {
        current.map { now.milliseconds(since: $0.began) } ?? 0
    }

    /// - Returns: what does not work; nil if the group does, or without a service the local resolver.
    private func conclude() -> String? {
        if let only {
            let title = only.id.title(only.name)
            guard working.contains(only.id) else {
                return failures[only.id].map { "\(title) does not work; \($0)" } ?? "\(title) does not work"
            }
            say("\(title) works")
            return nil
        }
        if httpdns?.httpOnly ?? false { say("httpOnly: the local resolver is never asked") }
        if httpdns != nil, working.contains(.httpdns) {
            say("HTTPDNS works")
            return nil
        }
        if httpdns == nil, working.contains(.fallback) {
            say("the local resolver works")
            return nil
        }
        let trouble =
            working.contains(.fallback)
            ? "HTTPDNS does not work, so the local resolver would answer its names"
            : "\(httpdns == nil ? "the local resolver" : "HTTPDNS") does not work, so clients would get SERVFAIL, or what is cached"
        let first = failures[httpdns == nil ? .fallback : .httpdns]
        return first.map { "\(trouble); \($0)" } ?? trouble
    }
}

extension DomainPattern {
    /// A name that a group with this pattern can be expected to know.
    fileprivate var nameToAsk: Name? {
        if case .subtree(let name) = self, name != .root { name } else { nil }
    }
}

extension NameAddresses {
    fileprivate var words: String {
        func count(_ family: FamilyAddresses) -> Int {
            if case .addresses(let addresses, _) = family { addresses.count } else { 0 }
        }
        switch count(ipv4) + count(ipv6) {
        case 0: return "no record (is its domain registered with the account?) of"
        case 1: return "1 address of"
        case let found: return "\(found) addresses of"
        }
    }
}
