import Base
import DNSCache
import DNSWire
import TestSupport
import Testing

@testable import Forwarding

/// Random events against what must hold whatever happens.
@Suite struct RandomForwarderTests {
    /// One run: everything random, and the books of who waits since when.
    private struct Run: ~Copyable {
        var chance: Chance
        var forwarder: Forwarder
        var now = Tick(nanoseconds: 1_000_000_000_000)
        var waiting: [Int: Tick] = [:]
        var clients = 0
        var requests: [(ServiceRequest, [Name])] = []
        var queries: [(ResolverQuery, ResolverQuestion)] = []
        var resolvers: Int
        var faults: [String] = []

        init(seed: UInt64) {
            chance = Chance(seed: seed)
            var timing = Timing()
            timing.serviceTimeout = [200, 2000, 60_000][chance.below(3)]
            timing.resolverTimeout = [200, 2000, 60_000][chance.below(3)]
            timing.hedgeAfter = [nil, 0, 300, 1000][chance.below(4)]
            timing.batch = [1, 3, 8][chance.below(3)]
            timing.retryTimesBeforeSwitchServer = 1 + chance.below(3)
            timing.minutesBeforeSwitchToMain = chance.below(2)
            timing.negativeTTL = UInt32(chance.below(3))
            timing.queriesPerSecond = [0, 0, 1, 5][chance.below(4)]
            timing.reportsLookups = chance.below(2) == 0
            resolvers = chance.below(4)
            let policy = Policy(
                hasService: chance.below(8) > 0, httpOnly: chance.below(4) == 0, negativeTTL: timing.negativeTTL,
                intercept: [], bypass: [Name("n1.example")!],
                privateAllowed: chance.below(2) == 0 ? [Name("n2.example")!] : nil)
            let stale = [0, 5, 1000][chance.below(3)]
            forwarder = Forwarder(
                policy: policy, timing: timing, serviceServers: 1 + chance.below(3), resolverServers: resolvers,
                cache: DNSCache(
                    bytes: 1 << 20, staleSeconds: UInt32(stale), prefetchAt: 75,
                    seed: (seed, 7)))
        }

        mutating func take() {
            let actions = forwarder.actions
            forwarder.actions = []
            for action in actions {
                switch action {
                case .reply(let clients, let answer, _):
                    for client in clients {
                        guard let asked = waiting.removeValue(forKey: client) else {
                            faults.append("client \(client) is answered twice: \(ScenarioAnswer.said(answer))")
                            continue
                        }
                        if now.milliseconds(since: asked) > 4000 { faults.append("client \(client) waited too long") }
                    }
                case .askService(let id, let server, let names, _):
                    if server >= forwarder.serviceHealth.count { faults.append("no service server \(server)") }
                    if Set(names).count != names.count { faults.append("a name twice in a request") }
                    requests.append((id, names))
                case .askResolver(let id, let server, _, let question):
                    if server >= resolvers { faults.append("no resolver \(server)") }
                    queries.append((id, question))
                case .cancelService(let id): requests.removeAll { $0.0 == id && chance.below(2) == 0 }
                case .cancelResolver(let id): queries.removeAll { $0.0 == id && chance.below(2) == 0 }
                case .report, .reportLookup: break
                }
            }
        }

        mutating func advance(_ milliseconds: Int) {
            let end = now.advanced(milliseconds: milliseconds)
            while let next = forwarder.nextDeadline, next <= end {
                now = max(now, next)
                forwarder.expire(at: now)
                forwarder.endTurn(at: now)
                take()
            }
            now = end
        }

        mutating func ask() {
            let types: [RecordType] = [.a, .a, .a, .aaaa, .aaaa, .https, .txt, .any]
            let audience = Audience.those(dnssecOK: chance.below(4) == 0, checkingDisabled: chance.below(8) == 0)
            let client = chance.below(20) == 0 ? nil : clients
            if client != nil {
                waiting[clients] = now
                clients += 1
            }
            forwarder.receive(
                Name("n\(chance.below(12)).example")!, types[chance.below(types.count)], for: audience, from: client,
                of: Source(.v4(192, 0, 2, UInt8(chance.below(5)))), recursionDesired: chance.below(10) > 0, at: now)
        }

        mutating func family(_ addresses: [IPAddress]) -> FamilyAddresses {
            chance.below(3) == 0 ? .noRecord : .addresses(addresses, ttl: UInt32(chance.below(5)))
        }

        mutating func failure() -> Failure {
            let kinds: [Failure.Kind] = [.timedOut, .unreachable, .untrusted, .unauthorized, .tooOften, .badAnswer]
            return Failure(
                kinds[chance.below(kinds.count)], "chance", retryAfter: [nil, 0, 3, 1000][chance.below(4)])
        }

        mutating func settleService() {
            guard !requests.isEmpty else { return }
            let (id, names) = requests.remove(at: chance.below(requests.count))
            guard chance.below(3) > 0 else { return forwarder.settle(id, .failed(failure()), at: now) }
            var results: [NameAddresses] = []
            for name in names where chance.below(6) > 0 {
                results.append(
                    NameAddresses(
                        name: name, ipv4: family([chance.below(3) == 0 ? .v4(10, 2, 3, 4) : .v4(1, 2, 3, 4)]),
                        ipv6: family([IPAddress("2001:db8::1")!])))
            }
            if chance.below(5) == 0 { results += results }
            if chance.below(5) == 0 {
                results.append(NameAddresses(name: Name("n3.example")!, ipv4: .noRecord, ipv6: .noRecord))
            }
            forwarder.settle(id, .answered(results), at: now)
        }

        mutating func settleResolver() {
            guard !queries.isEmpty else { return }
            let (id, question) = queries.remove(at: chance.below(queries.count))
            let ttl = UInt32(chance.below(5))
            let outcome: ResolverOutcome =
                switch chance.below(6) {
                case 0: .failed(failure())
                case 1: .truncated
                case 2: .answered(.failure(question.name, type: question.type, .servFail, extendedError: nil))
                case 3: .answered(.nxDomain(question.name, type: question.type, negativeTTL: ttl))
                default: .answered(.noData(question.name, type: question.type, negativeTTL: ttl))
                }
            forwarder.settle(id, outcome, at: now)
        }

        mutating func event() {
            switch chance.below(16) {
            case 0..<6: ask()
            case 6..<9: settleService()
            case 9..<12: settleResolver()
            case 12..<15: advance(chance.below(10) == 0 ? chance.below(70_000) : chance.below(700))
            default:
                change()
            }
            if chance.below(3) > 0 { forwarder.endTurn(at: now) }
            take()
            checkFlights()
        }

        mutating func change() {
            switch chance.below(40) {
            case 0, 1:
                resolvers = chance.below(4)
                forwarder.replaceResolvers(count: resolvers)
            case 2: forwarder.replaceServices(count: chance.below(4))
            case 3: forwarder.networkChanged(at: now)
            case 5: reconfigure()
            case 4: forwarder.policy.families = [.ipv4, .ipv6, .both][chance.below(3)]
            default: break
            }
        }

        mutating func reconfigure() {
            var timing = forwarder.timing
            timing.hedgeAfter = [nil, 0, 300, 1000][chance.below(4)]
            timing.queriesPerSecond = [0, 0, 1, 5][chance.below(4)]
            timing.batch = [1, 3, 8][chance.below(3)]
            let policy = Policy(
                hasService: chance.below(8) > 0, httpOnly: chance.below(4) == 0, negativeTTL: timing.negativeTTL,
                intercept: [], bypass: [Name("n\(chance.below(4)).example")!])
            let isOther = chance.below(2) == 0
            forwarder.reconfigure(
                policy: policy, timing: timing, services: isOther ? chance.below(4) : nil,
                doubt: [[], .routes, .serviceAnswers, .resolverAnswers][chance.below(4)], at: now)
            if isOther { forwarder.start(preResolve: [], keepAlive: [], at: now) }
        }

        mutating func checkFlights() {
            let (open, known) = (forwarder.flights.count, forwarder.flightOf.count)
            // Those from before other settings nobody new can join.
            let isFirst = forwarder.generation == 0
            if isFirst ? open != known : open < known { faults.append("\(open) flights for \(known) questions") }
            for (key, flight) in forwarder.flightOf where flight.key != key || forwarder.flights[flight.id] !== flight {
                faults.append("a question leads to another's flight")
            }
            let inLookups = forwarder.lookups.values.flatMap(\.flights)
            if Set(inLookups.map(ObjectIdentifier.init)).count != inLookups.count {
                faults.append("a flight in two lookups")
            }
            for flight in inLookups where forwarder.flights[flight.id] !== flight || flight.service != .waiting {
                faults.append("a lookup of a flight that has ended")
            }
            let waiting = forwarder.flightOf.values.reduce(0) { $0 + $1.clients.count }
            if isFirst ? forwarder.shares.clients != waiting : forwarder.shares.clients < waiting {
                faults.append("\(forwarder.shares.clients) clients, \(waiting) wait")
            }
        }
    }

    @Test(arguments: UInt64(0)..<200) func everyClientIsAnsweredOnceAndInTime(seed: UInt64) {
        var run = Run(seed: seed)
        for _ in 0..<2000 where run.faults.isEmpty {
            run.event()
            // The shell ends each turn; that names wait for a later one is chance's doing, and not for long.
            if run.chance.below(4) == 0 {
                run.forwarder.endTurn(at: run.now)
                run.take()
            }
        }
        run.forwarder.endTurn(at: run.now)
        run.take()
        run.advance(1_000_000)
        if !run.waiting.isEmpty { run.faults.append("\(run.waiting.count) clients are never answered") }
        let left = [
            run.forwarder.shares.clients, run.forwarder.shares.count, run.forwarder.flights.count,
            run.forwarder.flightOf.count,
            run.forwarder.lookups.count, run.forwarder.outbox.count, run.forwarder.requests.count,
            run.forwarder.resolverQueries.count, run.forwarder.deadlines.count,
        ]
        if left != [Int](repeating: 0, count: left.count) { run.faults.append("left behind: \(left)") }
        #expect(run.faults.isEmpty, "seed \(seed): \(run.faults.prefix(5))")
        #expect(run.clients > 400)
    }
}
