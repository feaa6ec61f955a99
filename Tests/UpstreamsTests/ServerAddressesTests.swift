import Base
import DNSWire
import Testing

@testable import Forwarding
@testable import Upstreams

/// The decisions about the addresses of servers, by invented time.
@Suite struct ServerAddressesTests {
    private let name = Name("dns.example")!
    private let account = Server(Endpoint(.v4(192, 0, 2, 98), port: 80), .account)
    private let resolver = Server(Endpoint(.v4(192, 0, 2, 53), port: 53))
    private let other = Server(Endpoint(.v4(192, 0, 2, 54), port: 53))
    private let first = IPAddress.v4(198, 51, 100, 1)
    private let second = IPAddress.v4(198, 51, 100, 2)
    private let six = IPAddress("2001:db8::1")!

    /// What to do, for a test to read: a query by who is asked for what.
    private enum Done: Equatable {
        case ask(Server, Ask)
        case again(Server)
        case cancel(Server)
        case tell
        case remember
        case lost(String)
        case found
        case leadsBack(Endpoint)
    }

    /// The decisions, their time in milliseconds, and the queries under way in the order they were put.
    private struct Clockwork {
        var addresses: ServerAddresses
        var now = 0
        var queries: [(id: QueryID, server: Server, ask: Ask)] = []
        let name: Name

        static let start = Tick(nanoseconds: 5_000_000_000_000)
        var tick: Tick { Self.start.advanced(milliseconds: now) }
        var nextDeadline: Int? { addresses.nextDeadline?.milliseconds(since: Self.start) }

        mutating func done() -> [Done] {
            defer { addresses.actions = [] }
            var done: [Done] = []
            for action in addresses.actions {
                switch action {
                case .ask(let id, let server, let ask):
                    queries.append((id, server, ask))
                    done.append(.ask(server, ask))
                case .askAgain(let id): done.append(.again(queries.first { $0.id == id }!.server))
                case .cancel(let id):
                    let place = queries.firstIndex { $0.id == id }!
                    done.append(.cancel(queries.remove(at: place).server))
                case .tell: done.append(.tell)
                case .remember: done.append(.remember)
                case .report(.lost(_, let reason)): done.append(.lost(reason))
                case .report(.found): done.append(.found)
                case .report(.leadsBack(_, let endpoint)): done.append(.leadsBack(endpoint))
                }
            }
            return done
        }

        /// Nil: it has to wait.
        mutating func want(port: UInt16 = 853) -> [IPAddress]? { want(name, port: port) }

        mutating func want(_ name: Name, port: UInt16 = 853) -> [IPAddress]? {
            addresses.want(name, port: port, at: tick).map(Self.list)
        }

        /// What those who wait are told.
        func told(port: UInt16 = 853) -> [IPAddress] { Self.list(addresses.endpoints(of: name, port: port)) }

        private static func list(_ endpoints: ServerEndpoints) -> [IPAddress] {
            if case .known(let endpoints) = endpoints { endpoints.map(\.address) } else { [] }
        }

        mutating func settle(_ server: Server, _ outcome: Outcome) -> [Done] {
            let place = queries.firstIndex { $0.server == server }!
            addresses.settle(queries.remove(at: place).id, outcome, at: tick)
            return done()
        }

        mutating func pass(_ milliseconds: Int) -> [Done] {
            now += milliseconds
            addresses.expire(at: tick)
            return done()
        }
    }

    private func clockwork(
        _ sources: [ServerAddresses.Source], listening: [Endpoint] = [],
        remembered: [(name: Name, addresses: [IPAddress])] = []
    ) -> Clockwork {
        var clockwork = Clockwork(
            addresses: ServerAddresses(listening: listening, remembered: remembered), name: name)
        clockwork.addresses.use(sources, at: clockwork.tick)
        return clockwork
    }

    private var both: [Done] { asks(resolver) }
    private func asks(_ server: Server) -> [Done] {
        [RecordType.aaaa, .a].map { .ask(server, .message(MessageQuestion(name: name, type: $0))) }
    }
    private var askAccount: Done { .ask(account, .addresses([name], .both)) }

    private func listed(_ ipv4: [IPAddress], ttl: UInt32 = 300, ipv6: [IPAddress] = []) -> Outcome {
        func family(_ addresses: [IPAddress]) -> FamilyAddresses {
            addresses.isEmpty ? .noRecord : .addresses(addresses, ttl: ttl)
        }
        return .addresses([NameAddresses(name: name, ipv4: family(ipv4), ipv6: family(ipv6))])
    }
    private func answer(_ addresses: [IPAddress], _ type: RecordType = .a, ttl: UInt32 = 300) -> Outcome {
        .answer(.addresses(name, type: type, addresses, ttl: ttl))
    }
    private var none: Outcome { .answer(.noData(name, type: .aaaa, negativeTTL: 30)) }
    private let refused = Outcome.failed(Failure(.unreachable, "connect: Connection refused"))

    // MARK: Order of sources

    @Test func theAccountIsAskedForBothFamiliesAtOnceAndNobodyElse() {
        var clock = clockwork([.account(account), .resolver(resolver)])
        #expect(clock.want() == nil)
        #expect(clock.want() == nil)
        #expect(clock.done() == [askAccount])
        #expect(clock.settle(account, listed([first], ipv6: [six])) == [.tell])
        #expect(clock.told() == [six, first])
        #expect(clock.nextDeadline == nil)
    }

    @Test func eachFailureLeadsToTheNextSourceAtOnce() {
        var clock = clockwork([.account(account), .resolver(resolver), .resolver(other)])
        #expect(clock.want() == nil)
        #expect(clock.done() == [askAccount])
        #expect(clock.settle(account, refused) == both)
        #expect(clock.settle(resolver, none) == [])
        #expect(clock.settle(resolver, .answer(.nxDomain(name, type: .a, negativeTTL: 30))) == asks(other))
        #expect(clock.settle(other, none) == [])
        #expect(clock.settle(other, answer([first])) == [.tell])
        #expect(clock.told() == [first])
    }

    @Test func besideASilentSourceTheNextIsAskedAndTheFirstAnswerCounts() {
        var clock = clockwork([.account(account), .resolver(resolver)])
        #expect(clock.want() == nil)
        #expect(clock.done() == [askAccount])
        #expect(clock.pass(999) == [])
        #expect(clock.pass(1) == both)
        #expect(clock.settle(resolver, answer([six], .aaaa)) == [.cancel(account)])
        #expect(clock.settle(resolver, answer([first])) == [.tell])
        #expect(clock.told() == [six, first])
    }

    @Test func withNobodyElseToAskASilentOneIsAskedAgain() {
        var clock = clockwork([.resolver(resolver)])
        #expect(clock.want() == nil)
        #expect(clock.done() == both)
        #expect(clock.pass(1000) == [.again(resolver), .again(resolver)])
        #expect(clock.settle(resolver, answer([first])) == [])
        #expect(clock.settle(resolver, none) == [.tell])
    }

    @Test func nobodyWaitsLongerThanFourSecondsAndTheLookupGoesOn() throws {
        let resolvers = (1...8).map { Server(Endpoint(.v4(192, 0, 2, UInt8($0)), port: 53)) }
        var clock = clockwork(resolvers.map { .resolver($0) })
        #expect(clock.want() == nil)
        _ = clock.done()
        var toldAt: Int?
        while toldAt == nil {
            clock.now = try #require(clock.nextDeadline)
            if clock.pass(0).contains(.tell) { toldAt = clock.now }
        }
        #expect(toldAt == 4000 && clock.told() == [])
        // Who comes later waits for four seconds of their own.
        clock.now += 10
        #expect(clock.want() == nil)
        while !clock.queries.contains(where: { $0.server == resolvers[7] }) {
            clock.now = try #require(clock.nextDeadline)
            _ = clock.pass(0)
        }
        #expect(clock.now == 7000)
        #expect(clock.settle(resolvers[7], answer([six], .aaaa)).contains(.cancel(resolvers[6])))
        // The other family may be a moment later.
        #expect(clock.pass(50) == [.tell] && clock.told() == [six])
    }

    @Test func whatWasFoundIsUsedWithoutTheFamilyThatIsLateWhichIsAskedForSoon() {
        var clock = clockwork([.resolver(resolver)])
        #expect(clock.want() == nil)
        #expect(clock.done() == both)
        #expect(clock.settle(resolver, answer([six], .aaaa, ttl: 86_400)) == [])
        #expect(clock.want() == [six])
        #expect(clock.pass(49) == [])
        #expect(clock.pass(1) == [.tell])
        #expect(clock.pass(1950) == [.cancel(resolver)])
        #expect(clock.pass(59_999) == [] && clock.want() == [six] && clock.done() == [])
        #expect(clock.pass(1) == [] && clock.want() == [six] && clock.done() == both)
    }

    @Test func withoutASourceItFailsAtOnce() {
        var clock = clockwork([])
        #expect(clock.want() == [])
        #expect(clock.done() == [.lost("there is no HTTPDNS and no local resolver to ask")])
        // One that comes is asked without delay.
        clock.addresses.use([.resolver(resolver)], at: clock.tick)
        #expect(clock.want() == nil && clock.done() == both)
    }

    // MARK: Refreshes and failures

    @Test(arguments: [(0, 60), (59, 60), (300, 300), (86_400, 86_400), (2_000_000, 86_400)])
    func whatIsKnownIsUsedAtOnceAndRefreshedWhenItIsWantedBehindItsTTL(ttl: UInt32, seconds: Int) {
        var clock = clockwork([.account(account)])
        _ = clock.want()
        _ = clock.done()
        #expect(clock.settle(account, listed([first], ttl: ttl)) == [.tell])
        #expect(clock.pass(seconds * 1000 - 1) == [] && clock.want() == [first] && clock.done() == [])
        #expect(clock.pass(1) == [] && clock.done() == [])
        #expect(clock.want() == [first] && clock.done() == [askAccount])
        #expect(clock.settle(account, listed([second])) == [])
        #expect(clock.want() == [second])
    }

    @Test func aFailedRefreshKeepsTheOldAndComesAgainAMinuteLater() {
        var clock = clockwork([.account(account)])
        _ = clock.want()
        _ = clock.done()
        _ = clock.settle(account, listed([first], ttl: 60))
        clock.addresses.worked(name, first)
        #expect(clock.done() == [.remember])
        #expect(clock.pass(60_000) == [] && clock.want() == [first] && clock.done() == [askAccount])
        #expect(clock.settle(account, refused) == [])
        #expect(clock.pass(59_999) == [] && clock.want() == [first] && clock.done() == [])
        #expect(clock.pass(1) == [] && clock.want() == [first] && clock.done() == [askAccount])
    }

    @Test func aNameThatIsNotFoundIsSaidOnceAndLookedUpLessAndLessOften() {
        var clock = clockwork([.account(account)])
        let reason = "HTTPDNS 192.0.2.98:80: connect: Connection refused"
        #expect(clock.want() == nil)
        #expect(clock.done() == [askAccount])
        #expect(clock.settle(account, refused) == [.lost(reason), .tell])
        for pause in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            #expect(clock.pass(pause * 1000 - 1) == [] && clock.want() == [] && clock.done() == [])
            #expect(clock.pass(1) == [] && clock.want() == nil && clock.done() == [askAccount])
            #expect(clock.settle(account, refused) == [.tell])
        }
        #expect(
            clock.addresses.endpoints(of: name, port: 853)
                == .unknown(Failure(.unreachable, "no address of dns.example: \(reason)")))
        _ = clock.pass(60_000)
        #expect(clock.want() == nil && clock.done() == [askAccount])
        #expect(clock.settle(account, listed([first])) == [.found, .tell])
    }

    @Test func whenAllAddressesFailItIsLookedUpAtOnceThenLessAndLessOften() {
        var clock = clockwork([.account(account)])
        _ = clock.want()
        _ = clock.done()
        _ = clock.settle(account, listed([first], ttl: 86_400))
        clock.addresses.worked(name, first)
        #expect(clock.done() == [.remember])
        _ = clock.pass(5000)
        clock.addresses.allFailed(name, at: clock.tick)
        #expect(clock.done() == [askAccount])
        // Who dials now waits for the answer.
        #expect(clock.want() == nil)
        #expect(clock.settle(account, listed([second])) == [.tell] && clock.told() == [first, second])
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            clock.addresses.allFailed(name, at: clock.tick)
            #expect(clock.done() == [] && clock.want() == [first, second])
            _ = clock.pass(pause * 1000 - 1)
            clock.addresses.allFailed(name, at: clock.tick)
            #expect(clock.done() == [])
            _ = clock.pass(1)
            clock.addresses.allFailed(name, at: clock.tick)
            #expect(clock.done() == [askAccount])
            #expect(clock.settle(account, listed([second])) == [])
        }
        clock.addresses.worked(name, second)
        #expect(clock.done() == [.remember] && clock.want() == [second, first])
        clock.addresses.allFailed(name, at: clock.tick)
        #expect(clock.done() == [askAccount])
    }

    @Test func whatHasWorkedIsKnownFromTheStartAndStandsFirst() {
        var clock = clockwork([.resolver(resolver)], remembered: [(name, [second, six])])
        #expect(clock.want() == [second, six])
        #expect(clock.done() == both)
        _ = clock.settle(resolver, none)
        #expect(clock.settle(resolver, answer([first, second])) == [])
        #expect(clock.want() == [second, six, first])
        clock.addresses.worked(name, second)
        #expect(clock.done() == [])
        clock.addresses.worked(name, six)
        // The same two in another order.
        #expect(clock.done() == [] && clock.want() == [six, second, first])
        clock.addresses.worked(name, first)
        #expect(clock.done() == [.remember])
        #expect(clock.addresses.remembered.map(\.name) == [name])
        #expect(clock.addresses.remembered.first?.addresses == [first, six])
    }

    // MARK: Hostile answers

    private static let listening = [Endpoint(.v4(127, 0, 0, 1), port: 53), Endpoint(IPAddress(v6: 0, 0), port: 53)]

    @Test func itsOwnAddressIsLeftOutAndSaidOnceAndTheNextSourceIsAsked() {
        let loopback = IPAddress.v4(127, 0, 0, 1)
        var clock = clockwork([.account(account), .resolver(resolver)], listening: Self.listening)
        #expect(clock.want(port: 53) == nil && clock.done() == [askAccount])
        #expect(clock.settle(account, listed([loopback])) == [.leadsBack(Self.listening[0])] + both)
        _ = clock.settle(resolver, none)
        #expect(clock.settle(resolver, answer([loopback, first])) == [.tell])
        #expect(clock.told(port: 53) == [first])
        // At another port something else may answer.
        #expect(clock.want(port: 853) == [first])
    }

    @Test func anAddressOfThisMachineIsItsOwnWhereItListensOnAll() {
        var clock = clockwork([.account(account)], listening: Self.listening)
        clock.addresses.networkChanged(own: [Endpoint(six, port: 0)], at: clock.tick)
        #expect(clock.want(port: 53) == nil && clock.done() == [askAccount])
        let reason = "HTTPDNS 192.0.2.98:80: its address is this daemon's own"
        #expect(
            clock.settle(account, listed([], ipv6: [six])) == [
                .leadsBack(Endpoint(six, port: 53)), .lost(reason), .tell,
            ])
        // Not said again, as nothing has changed; the machine's address has: it is another machine's now.
        _ = clock.pass(1000)
        #expect(clock.want(port: 53) == nil && clock.done() == [askAccount])
        #expect(clock.settle(account, listed([], ipv6: [six])) == [.tell])
        clock.addresses.networkChanged(own: [], at: clock.tick)
        #expect(clock.want(port: 53) == nil && clock.done() == [askAccount])
        #expect(clock.settle(account, listed([], ipv6: [six])) == [.found, .tell])
        // And this machine's again, though it is known: nobody is sent there.
        clock.addresses.networkChanged(own: [Endpoint(six, port: 0)], at: clock.tick)
        #expect(clock.want(port: 53) == nil)
    }

    @Test(arguments: [
        "0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "fe80::1", "::ffff:198.51.100.1",
    ])
    func whatNoMachineCanBeReachedAtIsNoAnswer(text: String) throws {
        let address = try #require(IPAddress(text))
        var clock = clockwork([.account(account), .resolver(resolver)])
        #expect(clock.want() == nil && clock.done() == [askAccount])
        let outcome = address.isIPv4 ? listed([address]) : listed([], ipv6: [address])
        #expect(clock.settle(account, outcome) == both)
    }

    @Test func ofThousandsOfAddressesAFewAreKept() {
        var clock = clockwork([.resolver(resolver)])
        #expect(clock.want() == nil && clock.done() == both)
        let many = (1...4000).map { IPAddress(v4: 0x0A00_0000 + $0) }
        let manySix = (1...2000).map { IPAddress(v6: 0x2001_0DB8_0000_0000, $0) }
        _ = clock.settle(resolver, answer(manySix, .aaaa))
        #expect(clock.settle(resolver, answer(many)) == [.tell])
        #expect(clock.told() == Array(manySix[..<3] + many[..<3]))
    }

    @Test func anAnswerThatIsAnotherEachTimeMovesNothingThatWorks() {
        var clock = clockwork([.account(account)], remembered: [(name, [first])])
        for round in 0..<100 {
            #expect(clock.want()?.first == first)
            #expect(clock.done() == [askAccount])
            let changing = (0..<8).map { IPAddress(v4: 0x0A00_0000 + UInt32(round * 8 + $0)) }
            #expect(clock.settle(account, listed(changing, ttl: 1)) == [])
            clock.addresses.worked(name, first)
            #expect(clock.done() == [] && clock.want()?.count == 4 && clock.done() == [])
            _ = clock.pass(60_000)
        }
    }

    @Test func onlySoManyNamesAreKept() throws {
        var clock = clockwork([.account(account)])
        let names = try (0..<65).map { try #require(Name("dns\($0).example")) }
        for name in names[..<64] { #expect(clock.want(name) == nil) }
        #expect(clock.want(names[64]) == [])
        clock.addresses.keep(Set(names[1...]))
        #expect(clock.want(names[64]) == nil)
        // Who waited for the name that is gone is told.
        #expect(clock.done().contains(.tell))
        #expect(
            clock.addresses.endpoints(of: names[0], port: 853)
                == .unknown(Failure(.unreachable, "no address of dns0.example: it is no longer configured")))
    }

    // MARK: Networks

    @Test func inAnotherNetworkWhatIsUnderWayIsAskedAgainAndFailuresAreForgotten() {
        var clock = clockwork([.account(account)])
        for _ in 0..<5 {
            #expect(clock.want() == nil)
            _ = clock.done()
            _ = clock.settle(account, refused)
            _ = clock.pass(60_000)
        }
        #expect(clock.want() == nil && clock.done() == [askAccount])
        clock.addresses.networkChanged(own: [], at: clock.tick)
        clock.addresses.networkChanged(own: [], at: clock.tick)
        #expect(clock.done() == [.again(account)])
        #expect(clock.settle(account, refused) == [.tell])
        clock.addresses.networkChanged(own: [], at: clock.tick)
        #expect(clock.want() == nil && clock.done() == [askAccount])
        #expect(clock.settle(account, listed([first], ttl: 3600)) == [.found, .tell])
        // What is known is used, and looked up anew.
        clock.addresses.networkChanged(own: [], at: clock.tick)
        #expect(clock.want() == [first] && clock.done() == [askAccount])
    }
}
