import Base
import DNSCache
import DNSWire
import Testing

/// The body of a stored answer is replaced, and its age stays.
@Suite struct ReplaceBodyTests {
    private let name = Name("www.example.com")!
    private let cache = DNSCache(bytes: 1 << 20, staleSeconds: 100, prefetchAt: 50, seed: (1, 2))

    private func answer(_ numbers: UInt32...) -> Answer {
        .addresses(name, type: .a, numbers.map { IPAddress(v4: $0) }, ttl: 60)
    }

    @Test func theNextHitHasTheNewOne() throws {
        cache.store(answer(1, 2), to: name, type: .a, for: everyone, at: 10, origin: 7)
        #expect(cache.ask("www.example.com", at: 50)?.isDueForRefresh == true)
        let changes = cache.changes
        cache.replaceBody(of: answer(1, 2), by: answer(2, 1).body, to: name, type: .a, for: signed)
        // A file with the former one is out of date.
        #expect(cache.changes == changes + 1)
        let seen = try #require(cache.ask("WWW.example.com", at: 60))
        #expect(seen.records == ["0.0.0.2", "0.0.0.1"] && seen.ttls == [10, 10] && !seen.isDueForRefresh)
        #expect(cache.find(name, type: .a, for: plain, at: 60)?.origin == 7)
        #expect(cache.statistics.entries == 1)
        // A stale one, too.
        cache.replaceBody(of: answer(2, 1), by: answer(1, 2).body, to: name, type: .a, for: everyone)
        #expect(cache.find(name, type: .a, for: plain, at: 100)?.answer.body == answer(1, 2).body)
    }

    @Test func whatIsNotThereOrDoesNotFitStays() {
        cache.store(answer(1, 2), to: name, type: .a, for: plain, at: 10)
        let other = Name("www.example.net")!
        let changes = cache.changes
        for (old, new, name, audience) in [
            (answer(2, 1), answer(1, 2), name, plain), (answer(1, 2), answer(1, 2, 3), name, plain),
            (answer(1, 2), answer(1), name, plain), (answer(1, 2), answer(2, 1), name, signed),
            (answer(1, 2), answer(2, 1), other, plain),
            (answer(1, 2), .addresses(other, type: .a, [IPAddress(v4: 2), IPAddress(v4: 1)], ttl: 60), name, plain),
        ] {
            cache.replaceBody(of: old, by: new.body, to: name, type: .a, for: audience)
        }
        cache.replaceBody(of: answer(1, 2), by: answer(2, 1).body, to: name, type: .aaaa, for: plain)
        #expect(cache.changes == changes)
        #expect(cache.ask("www.example.com", at: 10)?.records == ["0.0.0.1", "0.0.0.2"])
    }
}
