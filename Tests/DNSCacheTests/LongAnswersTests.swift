import Base
import DNSWire
import Testing

@testable import DNSCache

/// Answers over 4 KiB, of which whoever has a zone can make as many as he likes, 60 KB each.
@Suite struct LongAnswersTests {
    private static func longName(_ number: Int) -> Name { Name("long\(number).example")! }
    private static func shortName(_ number: Int) -> Name { Name("short\(number).example")! }

    private func store(_ numbers: Range<Int>, of length: Int, in cache: DNSCache) {
        for number in numbers {
            let name = Self.longName(number)
            cache.store(filler(name, bodyLength: length), to: name, type: .txt, for: everyone, at: 0)
        }
    }

    private func storeShort(_ numbers: Range<Int>, in cache: DNSCache) {
        cache.store(addressesOf: numbers.map(Self.shortName), at: 0)
    }

    private func countShort(_ numbers: Range<Int>, in cache: DNSCache) -> Int {
        numbers.count { cache.find(Self.shortName($0), type: .a, for: everyone, at: 0) != nil }
    }

    /// In a cache with room to spare, and in one that is full.
    @Test(arguments: [20_000, 500_000])
    func aFloodOfThemLeavesShortOnesAlone(stored: Int) {
        let cache = DNSCache(bytes: 16 << 20, seed: (1, 2))
        storeShort(0..<stored, in: cache)
        let before = countShort(0..<stored, in: cache)
        store(0..<2_000, of: 60_000, in: cache)
        let after = countShort(0..<stored, in: cache)
        #expect(before == stored || before < stored / 2)
        // A cache that was full gives up the share of the long ones.
        #expect(before < stored || after == stored)
        #expect(after > before * 17 / 20, "\(after) of \(before)")
    }

    /// Their share does not fill up for good: a new one is kept, at the latest when it was to be stored some times.
    @Test func aNewOneTakesThePlaceOfOldOnes() {
        let cache = DNSCache(bytes: 16 << 20, seed: (1, 2))
        storeShort(0..<20_000, in: cache)
        store(0..<2_000, of: 5_000, in: cache)
        for number in 2_000..<2_100 {
            let isKept = (0..<8).contains { _ in
                store(number..<number + 1, of: 5_000, in: cache)
                return cache.find(Self.longName(number), type: .txt, for: everyone, at: 0) != nil
            }
            #expect(isKept, "\(number)")
        }
        #expect(countShort(0..<20_000, in: cache) == 20_000)
    }

    /// Under all that is stored, of any length, no ring has more than its eighth of them.
    @Test func theyNeverHaveMoreThanTheirShare() {
        var segment = Segment(bytes: 1 << 20, staleSeconds: 0, prefetchAt: 0)
        let hash = NameHash(keys: (3, 4))
        for step in 0..<20_000 {
            let isLong = step % 3 == 0
            let name = isLong ? Self.longName(step % 700) : Self.shortName(step)
            let key = hash(name.wire.span, name: 0..<name.wire.count, type: RecordType.txt.rawValue)
            let answer = filler(name, bodyLength: isLong ? 4_097 + step * 37 % 58_000 : 60 + step % 900)
            segment.store(answer, hash: key, name, type: .txt, audience: .everyone, at: 0)
            if step % 101 == 0 { segment.check("step \(step)") }
        }
        segment.check("end")
    }
}
