import Base
import Configuration
import DNSCache
import DNSWire
import Forwarding
import Transport
import Upstreams

/// Asks servers for commands, one question after the other, over the daemon's own code: no cache, no other server in the
/// place of one that fails.
final class StraightAsking: @unchecked Sendable {
    // Unchecked: everything is used on the loop alone once it has started.
    private let loop: EventLoop
    private let upstreams: UpstreamRegistry
    /// How IPv4 servers are reached.
    private let translation: Translation
    /// Finds servers whose host is a name.
    private var forwarder: Forwarder
    /// The groups of the settings with their present servers.
    let groups: [UpstreamGroup]
    /// What was read of this machine's own resolvers.
    let local: LocalReading
    /// The store of the shared cache, which is connected to only if it is tried.
    private let store: Store
    /// Is told once why the store, which is tried now, cannot be used; nil: it can.
    private var storeTried: ((String?) -> Void)?
    /// The deadline of the question, or of the trial of the store, under way.
    private var deadline: Tick?
    private var current: (group: UpstreamGroup, number: UInt32)?
    private var number: UInt32 = 0
    /// When the present question, or the trial of the store, began.
    private var began = Tick(nanoseconds: 0)

    /// Begins the next question with ``ask(_:_:_:)``, if there is one more; called on the loop.
    var next: () -> Bool = { false }
    /// Is told what came of the last question; called on the loop.
    var settled: (Outcome) -> Void = { _ in }
    /// Is told of the steps of the present question; called on the loop.
    var progressed: (StreamUpstream.Progress) -> Void = { _ in }

    init(_ settings: Settings) throws(StartFailure) {
        loop = try StartFailure.ofSystem { () throws(SystemError) in try EventLoop(label: "httpdnsd.straight") }
        var numbers = GroupNumbers()
        numbers.add(settings)
        upstreams = UpstreamRegistry(
            loop: loop, ServerLookup(loop: loop, listening: settings.listen.everyAddress))
        translation = Translation(upstreams.lookup)
        store = Store(nil, loop: loop, outbox: upstreams.outbox)
        upstreams.apply(settings, try UpstreamRegistry.Prepared(settings), numbers)
        _ = store.apply(try Store.Prepared(settings.sharedCache))
        let local = LocalReading(settings, [.resolvers, .hosts])
        let services = settings.services(numbers)
        let described = UpstreamGroups(settings, numbers, services: services) { local.servers(of: $0) }
        let names = try NameLists(settings, numbers)
        forwarder = Forwarder(
            policy: Policy(settings, numbers, described, names, hosts: local.hosts ?? HostsTable()),
            timing: Timing(settings), groups: described.groups, cache: DNSCache(bytes: 1 << 20, seed: (0, 0)))
        (groups, self.local) = (described.groups, local)
        translation.apply(settings.nat64, at: Tick(nanoseconds: Clock.now()))
    }

    /// - Parameters:
    ///   - begin: called once on the loop, before the first question.
    ///   - conclude: called once on the loop when there is no question left; what it returns is called when all is closed.
    func start(begin: @escaping @Sendable () -> Void = {}, conclude: @escaping () -> @Sendable () -> Void) {
        upstreams.settle = { [unowned self] in settle($0, $1, toRepeat: $2) }
        upstreams.lookup.ask = { [unowned self] in forwarder.findServer($0, $1, for: $2, at: now) }
        upstreams.follow { [unowned self] in progressed($0) }
        loop.deadlineReached = { [unowned self] in deadlineReached() }
        loop.turnEnded = { [unowned self] in
            repeat {
                translation.expire(at: now)
                while isIdle, next() {}
            } while findServers() || upstreams.outbox.send()
            guard isIdle else { return setDeadline() }
            let done = conclude()
            store.upstream?.close()
            upstreams.close()
            loop.stop(done)
        }
        loop.start()
        loop.submit(begin)
    }

    /// - Parameter group: one of ``groups``.
    func ask(_ group: UpstreamGroup, _ server: Server, _ ask: Ask) {
        number += 1
        let now = now
        (current, began) = ((group, number), now)
        deadline = now.advanced(milliseconds: group.timeout)
        upstreams[group.id]?.ask(QueryID(standalone: number, of: group.id), server, ask, at: now)
    }

    private var isIdle: Bool { current == nil && storeTried == nil && !translation.isSearching }

    /// Tries the store of the shared cache: connection, certificate, password, and the rights to read and to write.
    /// - Parameter done: called once, with the reason if it cannot be used.
    func askStore(_ done: @escaping (String?) -> Void) {
        began = now
        deadline = began.advanced(milliseconds: Self.storeTime)
        storeTried = done
        store.handle = { [unowned self] in happened($0) }
        store.upstream?.apply([.fallback: []])
        store.upstream?.perform(.dial, wall: WallClock.unixSeconds())
    }

    private func happened(_ event: SharedEvent) {
        switch event {
        // The key of no daemon's question. The store forgets it by itself.
        case .connected:
            let question = SharedQuestion(group: .fallback, name: .root, type: .ns, audience: .everyone)
            store.upstream?.perform(.claim(SharedReadID(standalone: 1), question), wall: WallClock.unixSeconds())
        case .claimed: settleStore(nil)
        case .lost(let why), .failed(_, let why): settleStore(why)
        case .found, .written, .writeFailed, .dropped, .refused: break
        }
    }

    private func settleStore(_ why: String?) {
        guard let done = storeTried else { return }
        done(why)
        (storeTried, deadline) = (nil, nil)
    }

    /// Milliseconds for which the store is waited for.
    private static let storeTime = 2000

    /// What is to be said of the network; nil: nothing, or not yet.
    var reach: String? { translation.isSearching ? nil : translation.reach.words }

    /// How long the present question, or the trial of the store, has taken so far, in milliseconds.
    var elapsed: Int { now.milliseconds(since: began) }

    /// Carries out what the forwarder wants for the servers that are looked up.
    /// - Returns: whether there was anything.
    private func findServers() -> Bool {
        forwarder.endTurn(at: now)
        let actions = forwarder.takeActions()
        for action in actions {
            switch action {
            case .ask(let id, let server, let ask): upstreams[id.group]?.ask(id, server, ask, at: now)
            case .askAgain(let id): upstreams[id.group]?.askAgain(id)
            case .cancel(let id, let isOverdue): upstreams[id.group]?.cancel(id, isOverdue: isOverdue)
            case .reply(let numbers, let answer, _, by: let answerer, way: _):
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
        guard let deadline, deadline <= now else { return }
        guard let current else { return settleStore("no answer within \(Self.storeTime) ms") }
        upstreams[current.group.id]?.cancel(
            QueryID(standalone: current.number, of: current.group.id), isOverdue: true)
        settle(.failed(Failure(.timedOut, "no answer within \(current.group.timeout) ms")))
    }

    private func settle(_ id: QueryID, _ outcome: Outcome, toRepeat: Bool) {
        guard let current, id == QueryID(standalone: current.number, of: current.group.id) else {
            return forwarder.settle(id, outcome, toRepeat: toRepeat, at: now)
        }
        settle(outcome)
    }

    private func settle(_ outcome: Outcome) {
        guard current != nil else { return }
        settled(outcome)
        (current, deadline) = (nil, nil)
    }
}
