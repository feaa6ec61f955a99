import Base
import DNSCache
import DNSWire

@testable import Forwarding

/// Daemons, a store and an HTTPDNS account in invented time. The clients ask each daemon's cache first, as listeners do.
final class FleetWorld {
    /// One daemon.
    final class Node {
        let cache = DNSCache(bytes: 1 << 18, staleSeconds: 86_400, prefetchAt: 75, seed: (1, 2))
        var forwarder: Forwarder
        /// Seconds by which its wall clock is ahead.
        var clockOffset = 0
        var events: [Event] = []
        var replies: [(client: ClientNumber, answer: Answer, age: Reply.Age, at: UInt64)] = []
        /// The next moment at which its loop wakes.
        fileprivate var wakesAt = UInt64.max
        /// Actions for the store, in words.
        var commands: [String] = []

        init(isShared: Bool, hasFallback: Bool) {
            var upstreams = TestUpstreams()
            (upstreams.httpOnly, upstreams.isShared) = (!hasFallback, isShared)
            forwarder = upstreams.forwarder(cache)
        }
    }

    /// Boxed, since the queue moves it.
    private indirect enum Happening {
        case lookedUp(node: Int, QueryID, [Name])
        case told(node: Int, SharedEvent)
        case moment(node: Int)
    }

    private struct Entry {
        var content: SharedContent
        var stored: UInt64
        var lifetime: UInt32
        var freshUntil: UInt64
        var staleUntil: UInt64
    }

    private(set) var now: UInt64 = 1_000_000_000_000
    private(set) var nodes: [Node]
    /// The number of names that the account was asked for.
    private(set) var billed = 0
    private var queue = Deadlines<Happening>()
    private var store: [SharedQuestion: Entry] = [:]
    private var leases: [SharedQuestion: UInt64] = [:]
    private let names: [(query: [UInt8], question: Question, name: Name)]
    /// The time until a reply of the store, in nanoseconds.
    var storeTime: UInt64 = 400_000
    var lookupTime: UInt64 = 30_000_000
    var ttl: UInt32 = 60
    /// The reaction of the store instead of an answer.
    var storeFault: ((SharedAction) -> SharedEvent?)?
    /// Whether the store accepts all commands and answers none.
    var isStoreSilent = false
    /// Whether the account does not answer.
    var isServiceDown = false
    var hasNoRecord = false
    /// The servers of all groups fail at once.
    var serviceFault: Failure?
    private static let wallBegin: UInt64 = 1_700_000_000

    init(nodes count: Int, names nameCount: Int, isShared: Bool = true, hasFallback: Bool = false) {
        nodes = (0..<count).map { _ in Node(isShared: isShared, hasFallback: hasFallback) }
        names = (0..<nameCount).map { number in
            let name = Name("n\(number).example")!
            let query = Query.message(id: 1, name, type: .a, dnssecOK: false, checkingDisabled: false)
            guard case .question(let question) = Question.read(query.span) else { fatalError("no question") }
            return (query, question, name)
        }
        guard isShared else { return }
        for node in nodes.indices {
            nodes[node].forwarder.change(
                .sharedCache(SharedSettings(staleSeconds: 86_400, prefetchAt: 75)), at: tick)
            turn(node)
        }
        run(until: now + 10_000_000)
    }

    var tick: Tick { Tick(nanoseconds: now) }

    private func wall(_ node: Node) -> UInt64 {
        UInt64(Int(Self.wallBegin + now / 1_000_000_000) + node.clockOffset)
    }

    // MARK: Time

    private func at(_ moment: UInt64, _ happening: Happening) { queue.insert(happening, at: Tick(nanoseconds: moment)) }

    func run(until end: UInt64) {
        while let moment = queue.next, let happening = queue.popDue(at: Tick(nanoseconds: end)) {
            now = max(now, moment.nanoseconds)
            happen(happening)
        }
        now = max(now, end)
    }

    func run(milliseconds: UInt64) { run(until: now + milliseconds * 1_000_000) }

    private func happen(_ happening: Happening) {
        switch happening {
        case .lookedUp(let node, let id, let asked):
            let results = asked.map { name in
                NameAddresses(
                    name: name,
                    ipv4: hasNoRecord ? .noRecord : .addresses([.v4(192, 0, 2, 1)], ttl: ttl), ipv6: .noRecord)
            }
            nodes[node].forwarder.settle(id, .addresses(results), at: tick)
            turn(node)
        case .told(let node, let event):
            nodes[node].forwarder.handle(event, wall: wall(nodes[node]), at: tick)
            turn(node)
        case .moment(let node):
            guard nodes[node].wakesAt == now else { return }
            nodes[node].wakesAt = .max
            nodes[node].forwarder.expire(at: tick)
            turn(node)
        }
    }

    /// A client asks; `client` nil: the answer is not checked.
    func ask(_ node: Int, _ name: Int, _ client: ClientNumber? = nil) {
        let (query, question, name) = names[name]
        var reply = [UInt8](repeating: 0, count: 1232)
        var room = reply.mutableSpan
        let cache = nodes[node].cache
        let number = client ?? -1
        switch cache.answer(
            question, cache.key(question, query: query.span), query: query.span, at: tick.seconds, limit: room.count,
            into: &room)
        {
        case .hit: return
        case .hitDueForRefresh:
            nodes[node].forwarder.receive(name, .a, for: Audience(of: question), from: nil, at: tick)
        case .miss:
            nodes[node].forwarder.receive(name, .a, for: Audience(of: question), from: number, at: tick)
        }
        turn(node)
    }

    /// A client asks, and time passes.
    func ask(_ node: Int, _ name: Int, _ client: ClientNumber? = nil, andWait milliseconds: UInt64) {
        ask(node, name, client)
        run(milliseconds: milliseconds)
    }

    /// The daemon looks a name up without a client.
    func refresh(_ node: Int, _ name: Int) {
        nodes[node].forwarder.receive(
            names[name].name, .a, for: Audience(of: names[name].question), from: nil, at: tick)
        turn(node)
    }

    func flush(_ node: Int, _ name: Int?) {
        let scope = name.map { NameScope.only(names[$0].name) } ?? .all
        _ = nodes[node].forwarder.forget(scope, at: tick)
        turn(node)
    }

    private func turn(_ index: Int) {
        let node = nodes[index]
        node.forwarder.endTurn(at: tick)
        var isDone = true
        for action in node.forwarder.takeActions() {
            switch action {
            case .ask(let id, _, .addresses(let asked, _)):
                billed += asked.count
                if let serviceFault {
                    node.forwarder.settle(id, .failed(serviceFault), at: tick)
                    isDone = false
                } else if !isServiceDown {
                    at(now + lookupTime, .lookedUp(node: index, id, asked))
                }
            case .ask(let id, _, .message):
                guard let serviceFault else { break }
                node.forwarder.settle(id, .failed(serviceFault), at: tick)
                isDone = false
            case .shared(let action): perform(action, index)
            case .report(let event): node.events.append(event)
            case .reply(let clients, let answer, let age, _, way: _):
                for client in clients where client >= 0 { node.replies.append((client, answer, age, now)) }
            default: break
            }
        }
        guard isDone else { return turn(index) }
        guard let next = node.forwarder.nextDeadline.map({ max($0.nanoseconds, now) }), next != node.wakesAt else {
            return
        }
        node.wakesAt = next
        at(next, .moment(node: index))
    }

    // MARK: The store

    private func perform(_ action: SharedAction, _ index: Int) {
        let node = nodes[index]
        node.commands.append(action.word)
        if isStoreSilent { return }
        if let storeFault, let event = storeFault(action) {
            return at(now + storeTime, .told(node: index, event))
        }
        let done = now + storeTime
        switch action {
        case .dial: at(done, .told(node: index, .connected))
        case .hangUp: break
        case .read(let id, let question): at(done, .told(node: index, .found(id, finding(question, at: done))))
        case .claim(let id, let question):
            let isOurs = leases[question].map { $0 <= now } ?? true
            if isOurs { leases[question] = now + 300_000_000 }
            at(done, .told(node: index, .claimed(id, isOurs)))
        case .write(let question, let content, let lifetime, let stale):
            store[question] = Entry(
                content: content, stored: wall(node), lifetime: lifetime,
                freshUntil: now + UInt64(lifetime) * 1_000_000_000,
                staleUntil: now + UInt64(lifetime + stale) * 1_000_000_000)
            at(done, .told(node: index, .written))
        case .delete(let questions): for question in questions { store[question] = nil }
        case .lookForGeneration: break
        case .beginGeneration: store = [:]
        }
    }

    private func finding(_ question: SharedQuestion, at moment: UInt64) -> SharedFinding {
        guard let entry = store[question], moment < entry.staleUntil else { return .nothing }
        return .entry(
            SharedEntry(entry.content, stored: entry.stored, lifetime: entry.lifetime),
            isStaleCopy: moment >= entry.freshUntil)
    }

    var storedQuestions: Set<SharedQuestion> { Set(store.keys) }
}

extension SharedAction {
    /// The name of the action, without its arguments.
    fileprivate var word: String {
        switch self {
        case .dial: "dial"
        case .hangUp: "hang up"
        case .read: "read"
        case .claim: "claim"
        case .write: "write"
        case .delete: "delete"
        case .lookForGeneration: "look"
        case .beginGeneration: "begin"
        }
    }
}
