import Base
import DNSCache
import DNSWire
import TestSupport
import Testing

@testable import Forwarding

/// Random events, and the rules that must hold after each of them.
@Suite struct RandomForwarderTests {
    /// One run: all events are random, and the run records which client waits since when.
    private struct Run: ~Copyable {
        var chance: Chance
        var forwarder: Forwarder
        var now = Tick(nanoseconds: 1_000_000_000_000)
        var waiting: [Int: Tick] = [:]
        var clients = 0
        var queries: [(id: QueryID, ask: Ask)] = []
        var upstreams = TestUpstreams()
        /// The number of replacements of servers.
        var lists = 0
        var faults: [String] = []
        /// The zones from which names are chosen: a zone that is listed more often is chosen more often.
        var zones = ["", "", "", "", "corp.", "partner.", "shop."]
        /// Questions behind the wall that a server failed to answer.
        var wallFailures = 0
        /// The number of explanations of each fate.
        var explained: [String: Int] = [:]

        init(seed: UInt64) {
            chance = Chance(seed: seed)
            var timing = Timing()
            upstreams.timeout = [200, 2000, 60_000][chance.below(3)]
            upstreams.resolverTimeout = [200, 2000, 60_000][chance.below(3)]
            upstreams.hedgeAfter = [nil, 0, 300, 1000][chance.below(4)]
            upstreams.batch = [1, 3, 8][chance.below(3)]
            upstreams.retryTimes = 1 + chance.below(3)
            upstreams.returnMinutes = chance.below(2)
            timing.negativeTTL = UInt32(chance.below(3))
            upstreams.queriesPerSecond = [0, 0, 1, 5][chance.below(4)]
            timing.reportsLookups = chance.below(2) == 0
            upstreams.resolvers = .scenario(chance.below(4), list: 0)
            upstreams.service = .scenario(1 + chance.below(3), list: 0)
            upstreams.hasService = chance.below(8) > 0
            upstreams.httpOnly = chance.below(4) == 0
            upstreams.bypass = [Name("n1.example")!]
            upstreams.privateAllowed = chance.below(2) == 0 ? [Name("n2.example")!] : nil
            upstreams.isProven = chance.below(2) == 0
            upstreams.named = Self.named(&chance)
            upstreams.thenTry = Self.afterService(&chance)
            let stale = [0, 5, 1000][chance.below(3)]
            forwarder = upstreams.forwarder(
                DNSCache(bytes: 1 << 20, staleSeconds: UInt32(stale), prefetchAt: 75, seed: (seed, 7)), timing)
        }

        /// A wall for `corp.example`, a group for `partner.example` that may pass questions on and is sometimes an
        /// account, and an account for `shop.example`.
        private static func named(_ chance: inout Chance) -> [NamedGroup] {
            let partner = chance.below(2) == 0 ? "partner" : "partner account"
            let lines = [
                "office takes corp.example", "\(partner) takes partner.example", "backup account takes shop.example",
            ]
            return lines.map {
                var words = $0.split(separator: " ").map(String.init)
                words.insert("\(chance.below(4))", at: 1)
                var group = NamedGroup(words[...])!
                if words.starts(with: ["partner"]), group.isAccount { group.id = group.id.ofOtherKind }
                group.concurrency = [0, 1, 3][chance.below(3)]
                group.timeout = [200, 2000][chance.below(2)]
                group.called = ["n1.example", "n2.corp.example", "n3.partner.example"].filter { _ in
                    chance.below(4) == 0
                }.map { Name($0)! }
                guard group.id != wall else { return group }
                group.isProven = chance.below(2) == 0
                group.thenTry = [[], ["fallback"], ["httpdns", "fallback"], ["spare", "fallback"]][chance.below(4)]
                group.on = StepEnds(rawValue: UInt8(chance.below(32)))
                return group
            } + [
                NamedGroup(["spare", "\(chance.below(4))", "account"])!,
                NamedGroup(["resolvers", "\(chance.below(3))"])!,
            ]
        }

        private static func afterService(_ chance: inout Chance) -> [String] {
            [["fallback"], ["fallback"], ["backup", "fallback"], ["partner", "spare", "fallback"]][chance.below(4)]
        }

        private static let wall = GroupID(2)
        private static let behindWall = Name("corp.example")!

        /// Only the wall is asked for names behind it, and for no others: checked by names, not by the policy.
        private mutating func checkWall(_ group: GroupID, _ ask: Ask) {
            let names =
                switch ask {
                case .addresses(let names, _): names
                case .message(let question): [question.name]
                }
            for name in names where name.isWithin(Self.behindWall) != (group == Self.wall) {
                faults.append("\(group) is asked for \(name)")
            }
        }

        mutating func take() {
            for action in forwarder.takeActions() {
                switch action {
                case .reply(let clients, let answer, _, _, way: _):
                    for client in clients {
                        guard let asked = waiting.removeValue(forKey: client) else {
                            faults.append("client \(client) is answered twice: \(ScenarioAnswer.said(answer))")
                            continue
                        }
                        if now.milliseconds(since: asked) > 4000 { faults.append("client \(client) waited too long") }
                    }
                case .ask(let id, let server, let ask):
                    if !forwarder.overview(of: id.group).servers.contains(where: { $0.server == server }) {
                        faults.append("\(server) is none of \(id.group)'s servers")
                    }
                    if case .addresses(let names, _) = ask, Set(names).count != names.count {
                        faults.append("a name twice in a request")
                    }
                    checkWall(id.group, ask)
                    queries.append((id, ask))
                case .askAgain(let id):
                    if !queries.contains(where: { $0.id == id }) { faults.append("asked again what is not asked") }
                case .trial: Issue.record("no name is ranked")
                case .cancel(let id, _): queries.removeAll { $0.id == id && chance.below(2) == 0 }
                case .report, .reportLookup, .shared: break
                }
            }
        }

        mutating func endTurn() {
            forwarder.endTurn(at: now)
            take()
        }

        mutating func advance(_ milliseconds: Int) {
            let end = now.advanced(milliseconds: milliseconds)
            while let next = forwarder.nextDeadline, next <= end {
                now = max(now, next)
                forwarder.expire(at: now)
                endTurn()
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
            let (name, type) = (name(), types[chance.below(types.count)])
            if let client, chance.below(8) == 0 {
                return forwarder.findServer(name, chance.below(2) == 0 ? .a : .aaaa, for: client, at: now)
            }
            let number = chance.below(5)
            let source = Source(
                number < 3 ? .v4(192, 0, 2, UInt8(number)) : IPAddress(v6: 0xFD00 << 48, UInt64(number)))
            let recursionDesired = chance.below(10) > 0
            let key = Flight.Key(name: NameKey(name), type: type, audience: audience)
            guard client != nil, recursionDesired, audience == .plain, chance.below(4) == 0 else {
                return forwarder.receive(
                    name, type, for: audience, from: client, by: Asker(source), recursionDesired: recursionDesired,
                    at: now)
            }
            // The names of a request to an account are chosen at the end of the turn, one after the other.
            endTurn()
            let explanation = forwarder.explain(name, type, of: source, at: now)
            forwarder.receive(name, type, for: audience, from: client, by: Asker(source), at: now)
            forwarder.endTurn(at: now)
            check(explanation, key, client!)
            explained[explanation.fate.kind, default: 0] += 1
        }

        /// Checks that the forwarder does what was explained.
        private mutating func check(_ explanation: Explanation, _ key: Flight.Key, _ client: Int) {
            let reply = forwarder.actions.lazy.compactMap { action -> Answer? in
                if case .reply(let clients, let answer, _, _, way: _) = action, clients.contains(client) {
                    answer
                } else {
                    nil
                }
            }.first
            let flight = forwarder.flightOf[key]
            let isAsRight: Bool =
                switch explanation.fate {
                // There is no store.
                case .refused, .stored: false
                // The listener looks into the cache first: before the daemon's own answers and names without a record.
                case .cached:
                    reply == explanation.held?.answer
                        || explanation.parts.allSatisfy { $0.standing.isWithoutRecord }
                case .made(let answer): reply == answer
                case .asked(let index):
                    reply == nil
                        && flight.map { $0.route[$0.lastUnderWay].group } == explanation.parts[index].group.id
                case .failedLately(let answer), .noServer(let answer):
                    reply?.head.responseCode == (explanation.stale ?? answer).head.responseCode
                        && reply?.head.answerCount == (explanation.stale ?? answer).head.answerCount
                }
            guard !isAsRight else { return }
            faults.append(
                "\(key.name.name) \(key.type): explained as \(explanation.fate), parts \(explanation.parts.map(\.standing)), "
                    + "but \(reply.map(ScenarioAnswer.said) ?? "no reply"), \(flight.map { "\($0.lastUnderWay) under way" } ?? "no flight")"
            )
        }

        private mutating func name() -> Name {
            Name("n\(chance.below(12)).\(zones[chance.below(zones.count)])example")!
        }

        mutating func family(_ addresses: [IPAddress]) -> FamilyAddresses {
            chance.below(3) == 0 ? .noRecord : .addresses(addresses, ttl: UInt32(chance.below(5)))
        }

        mutating func failure() -> Failure {
            let kinds: [Failure.Kind] = [
                .timedOut, .unreachable, .untrusted, .insecure, .unauthorized, .tooOften, .denied, .badAnswer,
                .refusedTogether, .here,
            ]
            return Failure(
                kinds[chance.below(kinds.count)], "chance", retryAfter: [nil, 0, 3, 1000][chance.below(4)])
        }

        mutating func settle() {
            guard !queries.isEmpty else { return }
            let (id, ask) = queries.remove(at: chance.below(queries.count))
            switch ask {
            case .addresses(let names, _): forwarder.settle(id, results(names), at: now)
            case .message(let question): forwarder.settle(id, outcome(question), at: now)
            }
        }

        mutating func results(_ names: [Name]) -> Outcome {
            guard chance.below(3) > 0 else { return .failed(failure()) }
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
            let reasons = results.filter { _ in chance.below(3) == 0 }.compactMap {
                AbsenceReason($0.name, chance.below(2) == 0 ? .ipv4 : .ipv6, code: "code\(chance.below(3))".utf8)
            }
            return .addresses(results, reasons)
        }

        mutating func outcome(_ question: MessageQuestion) -> Outcome {
            let ttl = UInt32(chance.below(5))
            let kind = chance.below(8)
            if [0, 1, 2, 6].contains(kind), question.name.isWithin(Self.behindWall) { wallFailures += 1 }
            switch kind {
            case 6: return .answer(.failure(question.name, type: question.type, .refused, extendedError: nil))
            case 7: return .answer(.addresses(question.name, type: .a, [.v4(192, 0, 2, 1)], ttl: ttl))
            case 0: return .failed(failure())
            case 1: return .addresses([])
            case 2: return .answer(.failure(question.name, type: question.type, .servFail, extendedError: nil))
            case 3: return .answer(.nxDomain(question.name, type: question.type, negativeTTL: ttl))
            default: return .answer(.noData(question.name, type: question.type, negativeTTL: ttl))
            }
        }

        mutating func event() {
            switch chance.below(16) {
            case 0..<6: ask()
            case 6..<12: settle()
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
            case 0, 1: replaceServers(of: .fallback)
            case 2: replaceServers(of: .httpdns)
            case 3: forwarder.change(.network, at: now)
            case 4: forwarder.change(.families([.httpdns: [.ipv4, .ipv6, .both][chance.below(3)]]), at: now)
            case 5: reconfigure()
            default: break
            }
        }

        mutating func replaceServers(of group: GroupID) {
            // Now and then some stay.
            lists += chance.below(2)
            let servers = [Server].scenario(chance.below(4), list: lists)
            if group == .httpdns { upstreams.service = servers } else { upstreams.resolvers = servers }
            forwarder.change(.servers(group, servers), at: now)
        }

        mutating func reconfigure() {
            var timing = forwarder.timing
            timing.staleTTL = UInt32(chance.below(40))
            upstreams.hedgeAfter = [nil, 0, 300, 1000][chance.below(4)]
            upstreams.queriesPerSecond = [0, 0, 1, 5][chance.below(4)]
            upstreams.batch = [1, 3, 8][chance.below(3)]
            upstreams.hasService = chance.below(8) > 0
            upstreams.httpOnly = chance.below(4) == 0
            upstreams.bypass = [Name("n\(chance.below(4)).example")!]
            if chance.below(2) == 0 { upstreams.named = Self.named(&chance) }
            upstreams.thenTry = Self.afterService(&chance)
            let isOther = chance.below(2) == 0
            if isOther { upstreams.service = .scenario(chance.below(4), list: lists) }
            var policy = upstreams.policy(timing.negativeTTL)
            policy.setFamilies([.httpdns: forwarder.policy.families(of: .httpdns)])
            upstreams.trust = ["", "", "one", "two"][chance.below(4)]
            forwarder.change(
                .settings(policy, timing, upstreams.groups, renewed: isOther ? [.httpdns] : []), at: now)
            if isOther { forwarder.change(.wanted(preResolve: [], keepAlive: []), at: now) }
        }

        /// Asks for new names, which all servers answer from now on, for longer than any pause. Afterwards no server of a
        /// group that was asked may still be passed over; of an account's servers, the first.
        mutating func recover() {
            var asked: Set<GroupID> = []
            for second in 0..<130 {
                // Longer than the longest pause.
                if second == 65 { asked = [] }
                for zone in Set(zones).sorted() {
                    waiting[clients] = now
                    let name = Name("new\(second).\(zone)example")!
                    forwarder.receive(name, .a, for: .plain, from: clients, at: now)
                    clients += 1
                }
                endTurn()
                while let (id, ask) = queries.popLast() {
                    asked.insert(id.group)
                    forwarder.settle(id, .success(ask, ttl: 5), at: now)
                    endTurn()
                }
                advance(1000)
            }
            for group in forwarder.desk.groups where asked.contains(group.id) {
                guard let choice = upstreams.groups.first(where: { $0.id == group.id })?.choice, choice.pause != nil
                else { continue }
                for server in choice.triesBeside ? group.servers[...] : group.servers.prefix(1)
                where server.isPassedOver {
                    faults.append("\(server.server) of \(group.id) is not asked again")
                }
            }
        }

        mutating func checkFlights() {
            let open = forwarder.flights.ids.compactMap { forwarder.flights[$0] }
            // No new client can join a flight of earlier settings.
            for flight in open where flight.isCurrent && forwarder.flightOf[flight.key] !== flight {
                faults.append("a flight without a question")
            }
            for (key, flight) in forwarder.flightOf where flight.key != key || forwarder.flights[flight.id] !== flight {
                faults.append("a question leads to another's flight")
            }
            for group in forwarder.desk.groups {
                let inLookups = group.lookups.values.flatMap(\.flights)
                if Set(inLookups.map { ObjectIdentifier($0) }).count != inLookups.count {
                    faults.append("a flight in two lookups")
                }
                for flight in inLookups
                where forwarder.flights[flight.id] !== flight || !flight.isUnderWay(flight.step(of: group.id)) {
                    faults.append("a lookup of a flight that has ended")
                }
            }
            let waiting = open.reduce(0) { $0 + $1.clients.count }
            if forwarder.admission.clients.all != waiting {
                faults.append("\(forwarder.admission.clients.all) clients, \(waiting) wait")
            }
        }
    }

    @Test(arguments: UInt64(0)..<200) func everyClientIsAnsweredOnceAndInTime(seed: UInt64) {
        var run = Run(seed: seed)
        for _ in 0..<2000 where run.faults.isEmpty {
            run.event()
            // The shell ends each turn; that names wait for a later one is chance's doing, and not for long.
            if run.chance.below(4) == 0 { run.endTurn() }
        }
        run.endTurn()
        run.advance(1_000_000)
        run.recover()
        run.advance(1_000_000)
        if !run.waiting.isEmpty { run.faults.append("\(run.waiting.count) clients are never answered") }
        let left = (run.forwarder.underWay + [("sources", run.forwarder.admission.flights.count)]).filter {
            $0.count > 0
        }
        if !left.isEmpty { run.faults.append("left behind: \(left)") }
        #expect(run.faults.isEmpty, "seed \(seed): \(run.faults.prefix(5))")
        #expect(run.clients > 400)
        #expect(run.explained.values.reduce(0, +) > 5)
    }

    /// 10,000 failures of all kinds, with time-outs, other servers, networks and settings between them.
    @Test func noFailureTakesANameOutOfItsWall() {
        var (seed, failures) = (UInt64(1000), 0)
        repeat {
            var run = Run(seed: seed)
            run.zones = ["corp.", "corp.", "corp.", "partner.", "shop.", ""]
            for _ in 0..<500 where run.faults.isEmpty {
                run.ask()
                for _ in 0..<3 { run.settle() }
                run.endTurn()
                if run.chance.below(8) == 0 { run.advance(run.chance.below(3000)) }
                if run.chance.below(8) == 0 { run.change() }
                run.take()
            }
            run.advance(1_000_000)
            #expect(run.faults.isEmpty, "seed \(seed): \(run.faults.prefix(5))")
            failures += run.wallFailures
            seed += 1
        } while failures < 10_000 && seed < 1500
        #expect(failures >= 10_000)
    }
}

extension Explanation.Fate {
    fileprivate var kind: String {
        switch self {
        case .refused: "refused"
        case .cached: "cached"
        case .made: "made"
        case .asked: "asked"
        case .stored: "stored"
        case .failedLately: "failed lately"
        case .noServer: "nobody"
        }
    }
}
