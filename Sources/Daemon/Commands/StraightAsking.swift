import Base
import Configuration
import DNSCache
import DNSWire
import Forwarding
import Log
import Transport
import Upstreams

/// Asks servers for a command, with the daemon's own code: no cache, and no other server instead of a failed server.
/// Each call waits for the answer.
final class StraightAsking: @unchecked Sendable {
    // Unchecked: the start and the end are the command's thread's alone, and other mutable state is used only on the
    // loop, once it has started.
    let forwarderLoop: ForwarderLoop
    /// The groups of the settings with their present servers.
    let groups: [UpstreamGroup]
    /// The servers of each group that are named and not asked, by the group's name.
    let leftOut: [String: [LeftOutServer]]
    private var isStarted = false
    /// A remark on the network, once the loop has started.
    private var reach: String?
    private var upstreams: [GroupID: any Upstream] = [:]
    /// Called with the progress of the present question.
    private var progressed: @Sendable (StreamUpstream.Progress) -> Void = { _ in }

    init(_ settings: Settings) throws(StartFailure) {
        forwarderLoop = try ForwarderLoop.alone(settings.askingNothing)
        (groups, leftOut) = forwarderLoop.look { ($1.groups, $1.leftOut) }
        upstreams = forwarderLoop.look { [groups] in
            $1.upstreams.apart(groups.map(\.id), lookup: $1.upstreams.lookup.finder) { [unowned self] in progressed($0)
            }
        }
    }

    /// Starts the loop at the first call, and waits until the way to IPv4 servers is known. A command that finds nothing
    /// to ask ends without a loop, which would go on with what is released.
    /// - Returns: A remark on the network.
    @discardableResult
    func start() -> String? {
        if !isStarted {
            isStarted = true
            forwarderLoop.loop.start()
            reach = wait(for: { [self] _ in forwarderLoop.look { $1.translation } }, { $0.reach.words })
        }
        return reach
    }

    /// - Parameters:
    ///   - group: One of ``groups``.
    ///   - progressed: Called on the loop with the progress of this question.
    func ask(
        _ group: UpstreamGroup, _ server: Server, _ ask: Ask,
        progressed: @escaping @Sendable (StreamUpstream.Progress) -> Void = { _ in }
    ) -> (outcome: Outcome, milliseconds: Int) {
        start()
        return wait { [self] now in
            self.progressed = progressed
            let target = Inquiry.Target(server, of: group.id, timeout: group.timeout, ask)
            return Inquiry([target], upstreams, within: group.timeout, at: now)
        } _: {
            guard let said = $0.said[0] else { preconditionFailure("an inquiry that is over was answered") }
            return (said.outcome, Int(said.milliseconds))
        }
    }

    /// Tries the store of the shared cache: connection, certificate, password, and the rights to read and to write.
    /// - Returns: Why the store cannot be used; nil if it can.
    func tryStore(_ settings: Settings.SharedCache) throws(StartFailure) -> String? {
        let prepared = try Store.Prepared(settings)
        start()
        return wait { [self] now in
            let store = forwarderLoop.look { $1.store }
            _ = store.apply(prepared)
            return StoreTrial(store, at: now)
        } _: {
            $0.trouble
        }
    }

    /// Runs an inquiry on the loop, and waits for it.
    private func wait<Work: Inquiring & SendableMetatype, Result: Sendable>(
        for begin: @escaping @Sendable (Tick) -> Work, _ result: @escaping @Sendable (Work) -> Result
    ) -> Result {
        waiting { [self] done in
            forwarderLoop.loop.submit { [self] in
                let now = Tick(nanoseconds: Clock.now())
                let work = begin(now)
                _ = forwarderLoop.look { $1.upstreams }.begin(work, at: now) { done(result(work)) }
            }
        }
    }

    /// Closes all connections. Call once, at the end.
    func close() {
        guard isStarted else { return }
        waiting { [self] done in
            forwarderLoop.loop.submit { [self] in for upstream in upstreams.values { upstream.close() } }
            forwarderLoop.stop { done(()) }
        }
    }
}

extension ForwarderLoop {
    /// A loop for a command, with the groups, servers and rules of these settings, and without listeners. The loop is
    /// not started.
    static func alone(
        _ settings: Settings, _ provenance: Provenance = Provenance()
    ) throws(StartFailure) -> ForwarderLoop {
        let loop = try StartFailure.ofSystem { () throws(SystemError) in try EventLoop(label: "httpdnsd.command") }
        let report = Report(log: Logger(.error) { _ in })
        let listening = settings.listen.everyAddress
        let local = LocalServers(listening: listening, loop: loop, report: report, asksResolvedFirst: true)
        let forwarderLoop = ForwarderLoop(
            loop: loop, cache: DNSCache(bytes: 1 << 20, seed: (0, 0)), local: local,
            lookup: ServerLookup(loop: loop, listening: listening, report: report), report: report)
        var numbers = GroupNumbers()
        forwarderLoop.begin(try forwarderLoop.prepare(settings, after: nil, &numbers, provenance))
        return forwarderLoop
    }
}

extension Settings {
    /// The settings without the keys by which the daemon asks servers of its own accord.
    fileprivate var askingNothing: Settings {
        var settings = self
        settings.sharedCache.server = nil
        settings.changeGroups { group in
            guard group.account != nil else { return }
            (group.confIp, group.enableReport) = ([], false)
        }
        return settings
    }
}

/// An inquiry that ends when the way to IPv4 servers is known.
extension Translation: Inquiring {
    func proceed(at now: Tick) {}
    var isOver: Bool { !isSearching }
}

/// One connection to a store, and one command that reads and writes.
private final class StoreTrial: Inquiring {
    private let store: Store
    private let end: Tick
    private(set) var isOver = false
    /// Why the store cannot be used.
    private(set) var trouble: String?

    /// Milliseconds for which the store is awaited.
    private static let longest = 2000

    init(_ store: Store, at now: Tick) {
        self.store = store
        end = now.advanced(milliseconds: Self.longest)
        store.handle = { [unowned self] in happened($0) }
    }

    func proceed(at now: Tick) {
        store.upstream?.apply([.fallback: []])
        store.upstream?.perform(.dial, wall: WallClock.unixSeconds())
    }

    private func happened(_ event: SharedEvent) {
        switch event {
        // The claimed key belongs to no daemon's question, and expires by itself.
        case .connected:
            let question = SharedQuestion(group: .fallback, name: .root, type: .ns, audience: .everyone)
            store.upstream?.perform(.claim(SharedReadID(standalone: 1), question), wall: WallClock.unixSeconds())
        case .claimed: conclude(nil)
        case .lost(let why), .failed(_, let why): conclude(why)
        case .found, .written, .writeFailed, .dropped, .refused: break
        }
    }

    private func conclude(_ why: String?) {
        if !isOver { (isOver, trouble) = (true, why) }
    }

    var nextDeadline: Tick? { end }
    func expire(at now: Tick) { if end <= now { conclude("no answer within \(Self.longest) ms") } }
    func close() {}
}
