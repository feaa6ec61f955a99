import DNSWire
import Testing

@testable import DNSCache

/// Answers that stand in for others: gone when their TTL ends, in no snapshot, never in the place of a better one.
@Suite struct StandInTests {
    private let name = Name("www.example.com")!
    private let cache = DNSCache(bytes: 1 << 20, staleSeconds: 1000, prefetchAt: 75, seed: (1, 2))

    private func found(at now: UInt32) -> Answer? { cache.find(name, type: .a, for: plain, at: now)?.answer }

    @Test func itIsGivenForItsTTLAndNotStale() {
        cache.store(address(1, of: name), to: name, type: .a, for: plain, at: 100, isStandIn: true)
        #expect(cache.ask("www.example.com", at: 159)?.ttls == [1])
        #expect(cache.ask("www.example.com", at: 160) == nil)
        #expect(found(at: 159) == address(1, of: name))
        #expect(found(at: 160) == nil)
    }

    @Test func itTakesNoPlaceFromAnAnswerForEveryone() {
        let changes = cache.changes
        cache.store(address(1, of: name), to: name, type: .a, for: everyone, at: 100)
        for now: UInt32 in [101, 160, 1159] {
            cache.store(address(2, of: name), to: name, type: .a, for: plain, at: now, isStandIn: true)
            #expect(found(at: now) == address(1, of: name))
        }
        #expect(cache.changes == changes + 1)
        // That cannot be given any more.
        cache.store(address(2, of: name), to: name, type: .a, for: plain, at: 1160, isStandIn: true)
        #expect(found(at: 1160) == address(2, of: name))
        #expect(cache.statistics.entries == 1)
    }

    @Test func itTakesThePlaceOfOneOfItsOwnKindAndGivesItToABetterOne() {
        cache.store(address(1, of: name), to: name, type: .a, for: plain, at: 100)
        cache.store(address(2, of: name), to: name, type: .a, for: plain, at: 159, isStandIn: true)
        #expect(found(at: 159) == address(1, of: name))
        // That is fresh no longer.
        cache.store(address(2, of: name), to: name, type: .a, for: plain, at: 160, isStandIn: true)
        #expect(found(at: 161) == address(2, of: name))
        cache.store(address(3, of: name), to: name, type: .a, for: plain, at: 160, isStandIn: true)
        #expect(found(at: 161) == address(3, of: name))
        cache.store(address(4, of: name), to: name, type: .a, for: everyone, at: 161)
        #expect(found(at: 500) == address(4, of: name))
        #expect(cache.statistics.entries == 1)
    }

    @Test func noSnapshotHoldsIt() throws {
        let now = DNSCache.Moment(wall: 1_700_000_000, tick: 110)
        cache.store(address(1, of: name), to: name, type: .a, for: plain, at: 100, isStandIn: true)
        let other = Name("other.example.com")!
        cache.store(address(2, of: other), to: other, type: .a, for: plain, at: 100)
        let copy = DNSCache(bytes: 1 << 20, seed: (3, 4))
        #expect(try copy.restore(cache.snapshot(at: now), at: now) == 1)
        #expect(copy.ask("www.example.com", at: 110) == nil)
        #expect(copy.ask("other.example.com", at: 110) != nil)
    }
}
