import DNSWire
import Testing

@testable import DNSCache

@Suite struct NameHashTests {
    private func hash(_ keys: (UInt64, UInt64), _ name: Name, _ type: UInt16 = 1) -> UInt64 {
        NameHash(keys: keys)(name.wire.span, name: 0..<name.wire.count, type: type)
    }

    @Test func itIsTheSameForEverySpellingAndWhereverTheNameStands() {
        for text in ["a", "ab.c", "abcdef", "abcdefg", "www.example.com", String(repeating: "q", count: 63) + ".net"] {
            let name = Name(text)!
            let upper = [9, 9, 9] + name.wire.map { $0 >= 97 && $0 <= 122 ? $0 - 32 : $0 } + [7]
            let there = NameHash(keys: (1, 2))(upper.span, name: 3..<3 + name.wire.count, type: 1)
            #expect(there == hash((1, 2), name))
        }
    }

    @Test func everyOctetTheTypeAndBothKeysMatter() {
        let base = Name("www.example-1.com")!
        var seen: Set<UInt64> = [hash((1, 2), base), hash((1, 3), base), hash((2, 2), base), hash((1, 2), base, 28)]
        for at in [1, 2, 3, 5, 6, 12, 13, 15, 16, 17] {
            var wire = base.wire
            wire[at] = UInt8(ascii: "z")
            seen.insert(hash((1, 2), Name(wire: wire.span, at: 0, length: wire.count)))
        }
        #expect(seen.count == 14)
    }

    /// Names that share all but a few letters, as an attacker would choose them, spread over the segments and over the
    /// buckets of each: as evenly as chance (chi-squared, 4 standard deviations).
    @Test(arguments: [(1, 2), (0, 0), (0xDEAD_BEEF_0BAD_CAFE, 0x0123_4567_89AB_CDEF)] as [(UInt64, UInt64)])
    func itSpreadsAlikeNames(_ keys: (UInt64, UInt64)) {
        let count = 64_000
        let names = (0..<count).map { Name("www.example-\(100_000 + $0).com")! }
        for (shift, bits) in [(60, 4), (0, 10), (20, 10)] as [(UInt64, UInt64)] {
            var tally = [Int](repeating: 0, count: 1 << Int(bits))
            for name in names { tally[Int(hash(keys, name) >> shift & (1 << bits - 1))] += 1 }
            let expected = Double(count) / Double(tally.count)
            let chiSquared = tally.reduce(0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected }
            let freedom = Double(tally.count - 1)
            #expect(abs(chiSquared - freedom) < 4 * (2 * freedom).squareRoot(), "\(shift): \(chiSquared)")
        }
    }

    @Test func namesThatCollideUnderOneSeedDoNotUnderAnother() {
        var bySlot: [UInt64: [Name]] = [:]
        for number in 0..<60_000 {
            let name = Name("attack-\(number).example")!
            bySlot[hash((1, 2), name) & 0xFFF, default: []].append(name)
        }
        let colliding = bySlot.values.max { $0.count < $1.count }!
        let elsewhere = Set(colliding.map { hash((7, 8), $0) & 0xFFF })
        #expect(colliding.count > 25)
        #expect(elsewhere.count > colliding.count * 9 / 10)
    }

    /// Two names may share a hash: then each octet of them counts.
    @Test func aNameIsTheSameOnlyInEveryOctet() {
        for length in 1...40 {
            let stored = [9, 9] + (0..<length).map { UInt8(ascii: "a") + UInt8($0 % 26) } + [9]
            let asked = [7] + stored[2..<2 + length].map { $0 - 32 }
            #expect(isSame(stored, asked), "\(length)")
            for at in 1...length {
                var other = asked
                other[at] ^= 1
                #expect(!isSame(stored, other), "\(length), \(at)")
            }
        }
    }

    private func isSame(_ stored: [UInt8], _ asked: [UInt8]) -> Bool {
        sameName(stored.span, at: 2, as: asked.span, name: 1..<asked.count)
    }
}
