import Base
import DNSWire
import Testing

@testable import Forwarding
@testable import Upstreams

/// The decisions about the addresses of servers, in invented time.
@Suite struct ServerAddressesTests {
    private let name = Name("dns.example")!
    private let first = IPAddress.v4(198, 51, 100, 1)
    private let second = IPAddress.v4(198, 51, 100, 2)
    private let six = IPAddress("2001:db8::1")!

    /// The decisions, and the time in milliseconds.
    private struct Clockwork: ~Copyable {
        var addresses: ServerAddresses
        var now = 0
        let name: Name

        static let start = Tick(nanoseconds: 5_000_000_000_000)
        var tick: Tick { Self.start.advanced(milliseconds: now) }
        var nextDeadline: Int? { addresses.nextDeadline?.milliseconds(since: Self.start) }

        /// The actions since the last call.
        mutating func done() -> [ServerAddresses.Action] { exchange(&addresses.actions, with: []) }

        /// The known addresses; nil: the caller has to wait.
        mutating func want(port: UInt16 = 853) -> [IPAddress]? { want(name, port: port) }

        mutating func want(_ name: Name, port: UInt16 = 853) -> [IPAddress]? {
            addresses.want(name, port: port, at: tick).map(Self.list)
        }

        /// The addresses that waiting callers get.
        func told(port: UInt16 = 853) -> [IPAddress] { Self.list(addresses.endpoints(of: name, port: port)) }

        private static func list(_ endpoints: ServerEndpoints) -> [IPAddress] {
            if case .known(let endpoints) = endpoints { endpoints.map(\.address) } else { [] }
        }

        var failure: Failure? {
            if case .unknown(let failure) = addresses.endpoints(of: name, port: 853) { failure } else { nil }
        }

        /// One family's answer; nil: a failure.
        mutating func answer(
            _ type: RecordType, _ addresses: [IPAddress]?, ttl: UInt32 = 300, isShort: Bool = false
        ) -> [ServerAddresses.Action] {
            let answer: Answer =
                if let addresses {
                    addresses.isEmpty
                        ? .noData(name, type: type, negativeTTL: 30) : .addresses(name, type: type, addresses, ttl: ttl)
                } else {
                    .failure(name, type: type, .servFail, extendedError: nil)
                }
            let reason = addresses == nil ? "office: no answer in time" : "office: no record"
            self.addresses.answered(name, type, answer, reason, isShort: isShort, at: tick)
            return done()
        }

        /// The answers of both families, that of IPv6 first.
        mutating func answer(
            _ ipv4: [IPAddress]?, ttl: UInt32 = 300, ipv6: [IPAddress]? = [], isShort: Bool = false
        ) -> [ServerAddresses.Action] {
            let done = answer(.aaaa, ipv4 == nil ? nil : ipv6, ttl: ttl, isShort: isShort)
            return done + answer(.a, ipv4, ttl: ttl, isShort: isShort)
        }

        mutating func networkChanged(own: [Endpoint]) {
            addresses.own = own
            addresses.forgetFailures(at: tick)
        }

        mutating func pass(_ milliseconds: Int) -> [ServerAddresses.Action] {
            now += milliseconds
            addresses.expire(at: tick)
            return done()
        }
    }

    private func clockwork(
        listening: [Endpoint] = [], remembered: [(name: Name, addresses: [IPAddress])] = []
    ) -> Clockwork {
        Clockwork(addresses: ServerAddresses(listening: listening, remembered: remembered), name: name)
    }

    private var ask: ServerAddresses.Action { .ask(name) }
    private var tell: ServerAddresses.Action { .tell(name) }

    // MARK: Both families

    @Test func aNameIsAskedOnceForAllWhoWaitAndIPv6ComesFirst() {
        var clock = clockwork()
        #expect(clock.want() == nil)
        #expect(clock.want() == nil)
        #expect(clock.done() == [ask])
        #expect(clock.answer([first], ipv6: [six]) == [tell])
        #expect(clock.told() == [six, first])
        #expect(clock.nextDeadline == nil)
    }

    @Test func whetherANameWasLookedUpIsKnown() {
        var clock = clockwork()
        #expect(clock.addresses.hasLookedUp(name) == false)
        #expect(clock.want() == nil && clock.done() == [ask])
        #expect(clock.addresses.hasLookedUp(name) == false)
        #expect(clock.answer(nil).last == tell)
        #expect(clock.addresses.hasLookedUp(name) == true)
        clock = clockwork(remembered: [(name, [first])])
        #expect(clock.addresses.hasLookedUp(name) == true)
    }

    @Test func whatWasFoundIsUsedWithoutTheFamilyThatIsLate() {
        var clock = clockwork()
        #expect(clock.want() == nil)
        #expect(clock.done() == [ask])
        #expect(clock.answer(.a, [first], ttl: 86_400) == [])
        #expect(clock.want() == [first])
        #expect(clock.pass(49) == [])
        #expect(clock.pass(1) == [tell])
        #expect(clock.nextDeadline == nil)
        #expect(clock.answer(.aaaa, [six], ttl: 300) == [])
        #expect(clock.want() == [six, first])
    }

    @Test func aFamilyThatFailsIsAskedForSoon() {
        var clock = clockwork()
        #expect(clock.want() == nil)
        #expect(clock.done() == [ask])
        #expect(clock.answer(.aaaa, [six], ttl: 86_400) == [])
        #expect(clock.answer(.a, nil) == [tell])
        #expect(clock.pass(59_999) == [] && clock.want() == [six] && clock.done() == [])
        #expect(clock.pass(1) == [] && clock.want() == [six] && clock.done() == [ask])
    }

    // MARK: Refreshes and failures

    /// While this machine is short of resources, the daemon learns nothing about the name: it repeats the lookup each
    /// second, when a caller wants it, and blames no server.
    @Test func aShortageIsNoFailureOfTheName() {
        var clock = clockwork()
        for _ in 0..<20 {
            #expect(clock.want() == nil)
            #expect(clock.done() == [ask])
            #expect(clock.answer(.aaaa, nil, isShort: true) == [] && clock.answer(.a, []) == [tell])
            #expect(clock.failure?.kind == .here)
            #expect(clock.pass(999) == [] && clock.want() == [] && clock.done() == [])
            _ = clock.pass(1)
        }
        #expect(clock.want() == nil)
        #expect(clock.done() == [ask])
        #expect(clock.answer(nil) == [.report(.lost(name, "office: no answer in time")), tell])
        #expect(clock.failure?.kind == .unreachable)
        // One failure counts, whatever came before.
        #expect(clock.pass(1000) == [] && clock.want() == nil)
        #expect(clock.done() == [ask])
        #expect(clock.answer(nil, isShort: true) == [tell] && clock.failure?.kind == .here)
        #expect(clock.pass(1000) == [] && clock.want() == nil)
        #expect(clock.done() == [ask])
        #expect(clock.answer([first]) == [.report(.found(name)), tell] && clock.failure == nil)
    }

    /// The known addresses are still used, and soon refreshed.
    @Test func aShortageAtARefreshKeepsTheOld() {
        var clock = clockwork()
        _ = clock.want()
        _ = clock.done()
        _ = clock.answer([first], ttl: 60)
        _ = clock.pass(60_000)
        #expect(clock.want() == [first] && clock.done() == [ask])
        #expect(clock.answer(nil, isShort: true) == [] && clock.told() == [first])
        #expect(clock.pass(999) == [] && clock.want() == [first] && clock.done() == [])
        #expect(clock.pass(1) == [] && clock.want() == [first] && clock.done() == [ask])
    }

    @Test(arguments: [(0, 60), (59, 60), (300, 300), (86_400, 86_400), (2_000_000, 86_400)])
    func whatIsKnownIsUsedAtOnceAndRefreshedWhenItIsWantedBehindItsTTL(ttl: UInt32, seconds: Int) {
        var clock = clockwork()
        _ = clock.want()
        _ = clock.done()
        #expect(clock.answer([first], ttl: ttl) == [tell])
        #expect(clock.pass(seconds * 1000 - 1) == [] && clock.want() == [first] && clock.done() == [])
        #expect(clock.pass(1) == [] && clock.done() == [])
        #expect(clock.want() == [first] && clock.done() == [ask])
        #expect(clock.answer([second]) == [])
        #expect(clock.want() == [second])
    }

    @Test func aFailedRefreshKeepsTheOldAndComesAgainAMinuteLater() {
        var clock = clockwork()
        _ = clock.want()
        _ = clock.done()
        _ = clock.answer([first], ttl: 60)
        clock.addresses.worked(name, first)
        #expect(clock.done() == [.remember])
        #expect(clock.pass(60_000) == [] && clock.want() == [first] && clock.done() == [ask])
        #expect(clock.answer(nil) == [])
        #expect(clock.pass(59_999) == [] && clock.want() == [first] && clock.done() == [])
        #expect(clock.pass(1) == [] && clock.want() == [first] && clock.done() == [ask])
    }

    @Test func aNameThatIsNotFoundIsSaidOnceAndLookedUpLessAndLessOften() {
        var clock = clockwork()
        let reason = "office: no answer in time"
        #expect(clock.want() == nil)
        #expect(clock.done() == [ask])
        #expect(clock.answer(nil) == [.report(.lost(name, reason)), tell])
        for pause in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            #expect(clock.pass(pause * 1000 - 1) == [] && clock.want() == [] && clock.done() == [])
            #expect(clock.pass(1) == [] && clock.want() == nil && clock.done() == [ask])
            #expect(clock.answer(nil) == [tell])
        }
        #expect(
            clock.addresses.endpoints(of: name, port: 853)
                == .unknown(Failure(.unreachable, "no address of dns.example: \(reason)")))
        _ = clock.pass(60_000)
        #expect(clock.want() == nil && clock.done() == [ask])
        #expect(clock.answer([first]) == [.report(.found(name)), tell])
    }

    @Test func whenAllAddressesFailItIsLookedUpAtOnceThenLessAndLessOften() {
        var clock = clockwork()
        _ = clock.want()
        _ = clock.done()
        _ = clock.answer([first], ttl: 86_400)
        clock.addresses.worked(name, first)
        #expect(clock.done() == [.remember])
        _ = clock.pass(5000)
        clock.addresses.allFailed(name, at: clock.tick)
        #expect(clock.done() == [ask])
        // A caller that dials now waits for the answer.
        #expect(clock.want() == nil)
        #expect(clock.answer([second]) == [tell] && clock.told() == [first, second])
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            clock.addresses.allFailed(name, at: clock.tick)
            #expect(clock.done() == [] && clock.want() == [first, second])
            _ = clock.pass(pause * 1000 - 1)
            clock.addresses.allFailed(name, at: clock.tick)
            #expect(clock.done() == [])
            _ = clock.pass(1)
            clock.addresses.allFailed(name, at: clock.tick)
            #expect(clock.done() == [ask])
            #expect(clock.answer([second]) == [])
        }
        clock.addresses.worked(name, second)
        #expect(clock.done() == [.remember] && clock.want() == [second, first])
        clock.addresses.allFailed(name, at: clock.tick)
        #expect(clock.done() == [ask])
    }

    @Test func whatHasWorkedIsKnownFromTheStartAndStandsFirst() {
        var clock = clockwork(remembered: [(name, [second, six])])
        #expect(clock.want() == [second, six])
        #expect(clock.done() == [ask])
        #expect(clock.answer([first, second]) == [])
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

    @Test func itsOwnAddressIsLeftOutAndSaidOnce() {
        let loopback = IPAddress.v4(127, 0, 0, 1)
        var clock = clockwork(listening: Self.listening)
        #expect(clock.want(port: 53) == nil && clock.done() == [ask])
        #expect(clock.answer([loopback, first]) == [.report(.leadsBack(name, Self.listening[0])), tell])
        #expect(clock.told(port: 53) == [first])
        // Another service may answer at another port.
        #expect(clock.want(port: 853) == [first])
    }

    @Test("an address that is the daemon's own at one port serves at another, whether a reload or a group names it")
    func anAddressThatIsItsOwnAtOnePort() {
        let loopback = IPAddress.v4(127, 0, 0, 1)
        for isReload in [true, false] {
            var clock = clockwork(listening: Self.listening)
            #expect(clock.want(port: 53) == nil && clock.done() == [ask])
            let reason = "office: no record; its address is this daemon's own"
            #expect(
                clock.answer([loopback]) == [
                    .report(.leadsBack(name, Self.listening[0])), .report(.lost(name, reason)), tell,
                ])
            if isReload {
                clock.addresses.keep([name: [853]])
                clock.addresses.forgetFailures(at: clock.tick)
            }
            #expect(clock.want(port: 853) == nil && clock.done() == [ask])
            #expect(clock.answer([loopback]) == [.report(.found(name)), tell])
            #expect(clock.told(port: 853) == [loopback] && clock.told(port: 53) == [])
        }
    }

    @Test func anAddressOfThisMachineIsItsOwnWhereItListensOnAll() {
        var clock = clockwork(listening: Self.listening)
        clock.networkChanged(own: [Endpoint(six, port: 0)])
        #expect(clock.want(port: 53) == nil && clock.done() == [ask])
        let reason = "its address is this daemon's own; office: no record"
        #expect(
            clock.answer([], ipv6: [six]) == [
                .report(.leadsBack(name, Endpoint(six, port: 53))), .report(.lost(name, reason)), tell,
            ])
        // The error is not logged again; then the address no longer belongs to this machine.
        _ = clock.pass(1000)
        #expect(clock.want(port: 53) == nil && clock.done() == [ask])
        #expect(clock.answer([], ipv6: [six]) == [tell])
        clock.networkChanged(own: [])
        #expect(clock.want(port: 53) == nil && clock.done() == [ask])
        #expect(clock.answer([], ipv6: [six]) == [.report(.found(name)), tell])
        // The address belongs to this machine again: it is known, but not dialled.
        clock.networkChanged(own: [Endpoint(six, port: 0)])
        #expect(clock.want(port: 53) == nil)
    }

    @Test(arguments: [
        "0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "fe80::1", "::ffff:198.51.100.1",
    ])
    func whatNoMachineCanBeReachedAtIsNoAnswer(text: String) throws {
        let address = try #require(IPAddress(text))
        var clock = clockwork()
        #expect(clock.want() == nil && clock.done() == [ask])
        _ = address.isIPv4 ? clock.answer([address]) : clock.answer([], ipv6: [address])
        #expect(clock.told() == [])
    }

    @Test func ofThousandsOfAddressesAFewAreKept() {
        var clock = clockwork()
        #expect(clock.want() == nil && clock.done() == [ask])
        let many = (1...4000).map { IPAddress(v4: 0x0A00_0000 + $0) }
        let manySix = (1...2000).map { IPAddress(v6: 0x2001_0DB8_0000_0000, $0) }
        #expect(clock.answer(many, ipv6: manySix) == [tell])
        #expect(clock.told() == Array(manySix[..<3] + many[..<3]))
    }

    @Test func anAnswerThatIsAnotherEachTimeMovesNothingThatWorks() {
        var clock = clockwork(remembered: [(name, [first])])
        for round in 0..<100 {
            #expect(clock.want()?.first == first)
            #expect(clock.done() == [ask])
            let changing = (0..<8).map { IPAddress(v4: 0x0A00_0000 + UInt32(round * 8 + $0)) }
            #expect(clock.answer(changing, ttl: 1) == [])
            clock.addresses.worked(name, first)
            #expect(clock.done() == [] && clock.want()?.count == 4 && clock.done() == [])
            _ = clock.pass(60_000)
        }
    }

    @Test func onlySoManyNamesAreKept() throws {
        var clock = clockwork()
        let names = try (0..<65).map { try #require(Name("dns\($0).example")) }
        for name in names[..<64] { #expect(clock.want(name) == nil) }
        #expect(clock.want(names[64]) == [])
        clock.addresses.keep(Dictionary(uniqueKeysWithValues: names[1...].map { ($0, [853]) }))
        #expect(clock.want(names[64]) == nil)
        // The caller that waits for the removed name is told.
        #expect(clock.done().contains(.tell(names[0])))
        #expect(
            clock.addresses.endpoints(of: names[0], port: 853)
                == .unknown(Failure(.unreachable, "no address of dns0.example: it is no longer configured")))
    }

    // MARK: Networks

    @Test func inAnotherNetworkFailuresAreForgotten() {
        var clock = clockwork()
        for _ in 0..<5 {
            #expect(clock.want() == nil)
            _ = clock.done()
            _ = clock.answer(nil)
            _ = clock.pass(60_000)
        }
        #expect(clock.want() == nil && clock.done() == [ask])
        #expect(clock.answer(nil) == [tell])
        #expect(clock.want() == [])
        clock.networkChanged(own: [])
        #expect(clock.want() == nil && clock.done() == [ask])
        #expect(clock.answer([first], ttl: 3600) == [.report(.found(name)), tell])
        // The known addresses are used, and looked up again.
        clock.networkChanged(own: [])
        #expect(clock.want() == [first] && clock.done() == [ask])
    }

    @Test func inAnotherNetworkALookupUnderWayBeginsAgain() {
        var clock = clockwork()
        #expect(clock.want() == nil && clock.done() == [ask])
        #expect(clock.answer(.a, nil) == [])
        clock.networkChanged(own: [])
        #expect(clock.done() == [ask])
        #expect(clock.want() == nil && clock.done() == [])
        #expect(clock.answer(nil).last == tell)
        // Its failure is the first one in this network.
        #expect(clock.pass(1000) == [] && clock.want() == nil && clock.done() == [ask])
        #expect(clock.answer([first], ttl: 60) == [.report(.found(name)), tell])
        // Nobody waits for a refresh, which begins again as well.
        #expect(clock.pass(60_000) == [] && clock.want() == [first] && clock.done() == [ask])
        clock.networkChanged(own: [])
        #expect(clock.done() == [ask])
        #expect(clock.answer([second]) == [] && clock.want() == [second] && clock.done() == [])
    }

    @Test func inAnotherNetworkHalfOfAnAnswerIsNoLongerGiven() {
        var clock = clockwork()
        #expect(clock.want() == nil && clock.done() == [ask])
        #expect(clock.answer(.a, [first]) == [] && clock.nextDeadline == 50)
        clock.networkChanged(own: [])
        #expect(clock.done() == [ask] && clock.nextDeadline == nil)
        #expect(clock.pass(50) == [] && clock.want() == nil)
        #expect(clock.answer([second]) == [tell] && clock.told() == [second])
    }
}
