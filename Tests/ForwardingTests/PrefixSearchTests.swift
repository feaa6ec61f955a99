import Base
import Testing

@testable import Forwarding

/// RFC 7050, as in the table above ``PrefixSearch``.
@Suite struct PrefixSearchTests {
    private static let start = Tick(nanoseconds: 1_000_000_000_000)
    private static let wellKnown = IPAddress("64:ff9b::c000:aa")!
    private static let other = IPAddress("2001:db8:64::c000:ab")!

    private static func after(_ seconds: Int) -> Tick { start.advanced(milliseconds: seconds * 1000) }

    private static func expect(
        _ search: inout PrefixSearch, asks expected: Bool, at now: Tick, _ location: SourceLocation = #_sourceLocation
    ) {
        let asks = search.takeDue(at: now)
        #expect(asks == expected, sourceLocation: location)
    }

    private static func asking(at now: Tick = start) -> PrefixSearch {
        var search = PrefixSearch()
        search.begin(isWanted: true, at: now)
        expect(&search, asks: true, at: now)
        return search
    }

    @Test func nothingIsAskedOnANetworkWithIPv4() {
        var search = PrefixSearch()
        search.begin(isWanted: false, at: Self.start)
        #expect(search.nextDeadline == nil)
        Self.expect(&search, asks: false, at: Self.after(3600))
    }

    @Test func whatIsToldIsUsedAndAskedAgainWhenItsTimeIsOver() {
        var search = Self.asking()
        Self.expect(&search, asks: false, at: Self.start)
        search.answered([Self.wellKnown], for: 300, at: Self.after(1))
        #expect(search.prefix == .wellKnown)
        #expect(search.nextDeadline == Self.after(301))
        Self.expect(&search, asks: false, at: Self.after(300))
        Self.expect(&search, asks: true, at: Self.after(301))
    }

    @Test("however long it is said to hold", arguments: [(0, 60), (59, 60), (61, 61), (600, 600), (86_400, 600)])
    func bounds(_ ttl: UInt32, _ wait: Int) {
        var search = Self.asking()
        search.answered([Self.wellKnown], for: ttl, at: Self.start)
        #expect(search.nextDeadline == Self.after(wait))
    }

    @Test func withoutAnAnswerThePrefixStaysAndTheWaitDoubles() {
        var search = Self.asking()
        search.answered([Self.wellKnown], for: 60, at: Self.start)
        search.begin(isWanted: true, at: Self.start)
        var now = Self.start
        for wait in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600] {
            Self.expect(&search, asks: true, at: now)
            search.answered(nil, for: 0, at: now)
            #expect(search.prefix == .wellKnown)
            now = now.advanced(milliseconds: wait * 1000)
            #expect(search.nextDeadline == now)
        }
    }

    @Test func whereNoneIsToldThereIsNone() {
        var search = Self.asking()
        search.answered([Self.wellKnown], for: 60, at: Self.start)
        Self.expect(&search, asks: true, at: Self.after(60))
        search.answered([], for: 60, at: Self.after(60))
        #expect(search.prefix == nil)
        #expect(search.nextDeadline == Self.after(660))
    }

    @Test func anAddressThatHoldsNoneOfTheWellKnownOnesIsNoPrefix() {
        var search = Self.asking()
        search.answered([IPAddress("2001:db8::1")!], for: 60, at: Self.start)
        #expect(search.prefix == nil)
    }

    @Test func ofSeveralTheOneInUseStays() {
        var search = Self.asking()
        search.answered([Self.other], for: 60, at: Self.start)
        Self.expect(&search, asks: true, at: Self.after(60))
        search.answered([Self.wellKnown, Self.other], for: 60, at: Self.after(60))
        #expect(search.prefix?.description == "2001:db8:64::/96")
        Self.expect(&search, asks: true, at: Self.after(120))
        search.answered([Self.wellKnown], for: 60, at: Self.after(120))
        #expect(search.prefix == .wellKnown)
    }

    @Test func aNetworkWithIPv4ForgetsIt() {
        var search = Self.asking()
        search.answered([Self.wellKnown], for: 60, at: Self.start)
        search.begin(isWanted: false, at: Self.after(1))
        #expect(search.prefix == nil)
        // The answer to the earlier question comes too late.
        search.answered([Self.other], for: 60, at: Self.after(2))
        #expect(search.prefix == nil)
    }

    @Test func anAnswerThatNobodyWaitsForIsNone() {
        var search = Self.asking()
        search.begin(isWanted: true, at: Self.after(1))
        search.answered([Self.other], for: 60, at: Self.after(1))
        #expect(search.prefix == nil)
        Self.expect(&search, asks: true, at: Self.after(1))
    }

    @Test func itIsAwaitedUntilAResolverHasAnsweredOrFailed() {
        var search = PrefixSearch()
        #expect(!search.isAwaited)
        for addresses in [nil, [], [Self.wellKnown]] as [[IPAddress]?] {
            search.begin(isWanted: true, at: Self.start)
            #expect(search.isAwaited)
            Self.expect(&search, asks: true, at: Self.start)
            #expect(search.isAwaited)
            search.answered(addresses, for: 60, at: Self.start)
            #expect(!search.isAwaited)
        }
        search.begin(isWanted: false, at: Self.start)
        #expect(!search.isAwaited)
    }

    /// A network with IPv4 needs no translator, but clients may want addresses under its prefix.
    @Test func whereIPv4IsReachedThroughTheTranslator() {
        var reach = IPv4Reach()
        func leads(hasIPv4: Bool, isSynthesizing: Bool) -> Bool {
            (reach.hasIPv4, reach.isSynthesizing) = (hasIPv4, isSynthesizing)
            return reach.leadsToIPv4
        }
        func all() -> [Bool] {
            [(true, false), (true, true), (false, false), (false, true)].map { leads(hasIPv4: $0, isSynthesizing: $1) }
        }
        #expect(all() == [false, false, false, false])
        reach.prefix = .wellKnown
        #expect(all() == [false, true, true, true])
        #expect(reach.words?.hasPrefix("this network has no IPv4: ") ?? false)
        // No route leads anywhere.
        reach.hasIPv6 = false
        #expect(reach.words == nil)
    }
}
