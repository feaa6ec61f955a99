import Base
import Configuration
import Counters
import DNSCache
import Dispatch
import Forwarding
import Synchronization
import Transport
import Upstreams

/// Goes round the daemon's queues and asks each for what it alone knows. Nothing waits for it, and no query is held up
/// by more than a few copies.
final class Observer: Sendable {
    private let resolver: Resolver
    private let streams: StreamServer
    private let datagrams: [DatagramListener]
    private let cache: DNSCache
    private let cacheLimit: Int
    private let logLinesLost: @Sendable () -> UInt64
    private let startedAt = WallClock.unixSeconds()
    private let isStopping = Atomic(false)
    let reloads = Mutex(Reloads(at: WallClock.unixSeconds()))

    /// How long a queue may take to answer before it counts as stuck.
    static let patience = DispatchTimeInterval.seconds(1)

    init(
        _ settings: Settings, resolver: Resolver, streams: StreamServer, datagrams: [DatagramListener], cache: DNSCache,
        logLinesLost: @escaping @Sendable () -> UInt64
    ) {
        self.logLinesLost = logLinesLost
        (self.resolver, self.streams, self.datagrams, self.cache) = (resolver, streams, datagrams, cache)
        cacheLimit = settings.cache.megabytes << 20
    }

    /// The daemon takes no more questions from now on.
    func stopping() { isStopping.store(true, ordering: .relaxed) }

    /// - Parameter done: called on a queue of the daemon's; not at all when that is stuck or has ended.
    func overview(_ done: @escaping @Sendable (Overview) -> Void) {
        resolver.loop.submit { [self] in
            var overview = Overview(cache.statistics)
            resolver.describe(&overview)
            streams.loop.submit { [self, overview] in
                var overview = overview
                overview.limits.tcpClients = streams.openClients
                overview.limits.clients = streams.counters
                complete(&overview)
                done(overview)
            }
        }
    }

    /// What can be read from anywhere.
    private func complete(_ overview: inout Overview) {
        overview.at = Tick(nanoseconds: Clock.now())
        (overview.startedAt, overview.now) = (startedAt, WallClock.unixSeconds())
        overview.isStopping = isStopping.load(ordering: .relaxed)
        overview.cacheLimit = cacheLimit
        overview.logLinesLost = logLinesLost()
        overview.reloads = reloads.withLock { $0 }
        let doors = datagrams.map(\.tally) + [streams.tally]
        for transport in [Tally.Transport.udp, .tcp] {
            for isIPv4 in [true, false] {
                var questions = Overview.Questions(transport: transport, isIPv4: isIPv4)
                for door in doors where door.transport == transport {
                    for kind in 0..<QuestionKind.count {
                        questions.counts[kind] += door.asked(kind, fromIPv4: isIPv4)
                    }
                }
                overview.questions.append(questions)
            }
        }
        for tally in doors + [resolver.tally] {
            for kind in 0..<ResponseKind.count { overview.responses[kind] += tally.answered(kind) }
            tally.add(to: &overview.durations)
            overview.prefetches += tally.prefetches
        }
    }

    /// Questions since the start; from any thread.
    var asked: UInt64 { (datagrams.map(\.tally) + [streams.tally]).reduce(0) { $0 + $1.asked } }

    /// Whether every queue that a query may pass still turns.
    /// - Parameter done: called once, on any queue, after ``patience`` at the latest.
    func liveness(_ done: @escaping @Sendable (Bool) -> Void) {
        let round = Round(waiting: datagrams.count + 2, done)
        resolver.loop.submit { round.answered() }
        streams.loop.submit { round.answered() }
        for listener in datagrams { listener.ping { round.answered() } }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { round.timeIsUp() }
    }

    /// Counts those who have answered, and says once what came of it.
    private final class Round: Sendable {
        private let state: Mutex<(waiting: Int, done: (@Sendable (Bool) -> Void)?)>

        init(waiting: Int, _ done: @escaping @Sendable (Bool) -> Void) { state = Mutex((waiting, done)) }

        func answered() {
            take { state in
                state.waiting -= 1
                return state.waiting == 0
            }?(true)
        }

        func timeIsUp() { take { _ in true }?(false) }

        private func take(
            when isOver: (inout (waiting: Int, done: (@Sendable (Bool) -> Void)?)) -> Bool
        ) -> (@Sendable (Bool) -> Void)? {
            state.withLock { state in
                guard isOver(&state) else { return nil }
                defer { state.done = nil }
                return state.done
            }
        }
    }
}

extension Resolver {
    /// On the loop.
    func describe(_ overview: inout Overview) {
        overview.encryption = settings.httpdns?.credential.name
        overview.isHTTPOnly = settings.httpdns?.httpOnly ?? false
        let services = settings.httpdns == nil ? [] : service?.servers ?? []
        overview.services = zip(services, forwarder.serviceHealth).map { .init(endpoint: $0, health: $1) }
        overview.currentService = forwarder.currentService
        overview.resolvers = zip(local.servers, forwarder.resolverHealth).map { .init(endpoint: $0, health: $1) }
        overview.isOpen = isOpen
        overview.counters = forwarder.counters
        overview.limits.flights = forwarder.underWay.flights
        overview.limits.refusedForRoom = queue.refused
        overview.limits.mismatches = local.mismatches
        overview.upstreams = local.tallies.durations
        overview.connections = local.tallies.connections
    }
}
