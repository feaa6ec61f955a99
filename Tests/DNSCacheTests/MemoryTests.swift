import Base
import CAllocations
import DNSWire
import Glibc
import Synchronization
import Testing

@testable import DNSCache

/// What the cache does with the memory it is given.
@Suite struct MemoryTests {
    private let cache = DNSCache(bytes: 1 << 20, seed: (3, 4))

    @Test func anEntryIs40OctetsAndItsFieldsFitIn() {
        #expect(Entry.size == 40)
        #expect(MemoryLayout<Entry>.size <= Entry.size)
        #expect(MemoryLayout<Entry>.alignment <= Entry.alignment)
    }

    /// Else two listeners would write the same line at names that have nothing to do with each other.
    @Test func aSegmentSharesNoCacheLineWithItsNeighbours() {
        #expect(MemoryLayout<Mutex<Segment>>.stride == 2 * RingMap.cacheLine)
        #expect(UInt(bitPattern: cache.segments) % UInt(RingMap.cacheLine) == 0)
    }

    @Test(arguments: [0, 1 << 20, 3_000_017, 32 << 20])
    func itNeverTakesMoreThanItsBytes(_ bytes: Int) {
        let given = max(bytes, 1 << 20)
        let share = DNSCache.share(of: bytes)
        let ring = Ring(bytes: share)
        let taken = (ring.capacity + 4 * (ring.bucketMask + 1) + MemoryLayout<Segment>.stride) * DNSCache.segmentCount
        #expect(taken <= given)
        #expect(taken > given - given / 100)
    }

    /// A cache that holds little takes little, whatever it may take.
    @Test func nothingIsResidentBeforeItIsUsed() {
        let ring = Ring(bytes: DNSCache.share(of: 32 << 20))
        let size = 4 * (ring.bucketMask + 1)
        var pages = [UInt8](repeating: 1, count: size / Int(getpagesize()))
        let isKnown = unsafe mincore(UnsafeMutableRawPointer(ring.map.buckets), size, &pages) == 0
        #expect(isKnown && pages.allSatisfy { $0 & 1 == 0 })
    }

    @Test func theBytesOfLiveEntriesStayBelowItsBytes() {
        cache.store(addressesOf: hosts(50_000), at: 0)
        let statistics = cache.statistics
        #expect(statistics.bytes < 1 << 20)
        #expect(statistics.bytes > (1 << 20) * 9 / 10)
        #expect(Int(statistics.evictions) + statistics.entries == 50_000)
    }

    @Test func anAddressPairTakesAtMost200Octets() {
        for number in 100_000..<120_000 {
            let name = Name("www.example-\(number).com")!
            let six = Answer.addresses(name, type: .aaaa, [IPAddress("2001:db8::1")!], ttl: 60)
            cache.store(address(1, of: name), to: name, type: .a, for: everyone, at: 0)
            cache.store(six, to: name, type: .aaaa, for: everyone, at: 0)
        }
        #expect((1 << 20) * 2 / cache.statistics.entries <= 200)
    }

    @Test func anAnswerTooLargeForItsSegmentIsNotKeptAndHarmsNothing() {
        let largest = Ring(bytes: DNSCache.share(of: 1 << 20)).largestRecord / 8 * 8
        let name = Name("large.example.com")!
        let small = Name("small.example.com")!
        cache.store(address(1, of: small), to: small, type: .a, for: everyone, at: 0)
        cache.store(filler(name, bodyLength: largest - Entry.size), to: name, type: .txt, for: everyone, at: 0)
        #expect(cache.find(name, type: .txt, for: plain, at: 0) != nil)
        cache.store(filler(name, bodyLength: largest - Entry.size + 1), to: name, type: .txt, for: everyone, at: 0)
        // Nor is what it would have replaced: that is known to be out of date.
        #expect(cache.find(name, type: .txt, for: plain, at: 0) == nil)
        var huge = filler(name, bodyLength: 60_000)
        huge.body += [UInt8](repeating: 0, count: 10_000)
        cache.store(huge, to: name, type: .txt, for: everyone, at: 0)
        #expect(cache.statistics.entries == 1)
        #expect(cache.find(small, type: .a, for: plain, at: 0) != nil)
    }

    // MARK: Who goes first

    /// Names that all fall into one segment, so that its order can be seen.
    private static func namesOfOneSegment(_ count: Int, seed: (UInt64, UInt64)) -> [Name] {
        let hash = NameHash(keys: seed)
        var names: [Name] = []
        var number = 100_000
        while names.count < count {
            let name = Name("n\(number).example")!
            if hash(name.wire.span, name: 0..<name.wire.count, type: 1) >> 60 == 5 { names.append(name) }
            number += 1
        }
        return names
    }

    @Test func theOldestGoesFirst() {
        let names = Self.namesOfOneSegment(2000, seed: (3, 4))
        for name in names { cache.store(address(1, of: name), to: name, type: .a, for: everyone, at: 0) }
        let isKept = names.map { cache.find($0, type: .a, for: plain, at: 0) != nil }
        let firstKept = isKept.firstIndex(of: true)!
        #expect(firstKept > 0)
        #expect(isKept[firstKept...].allSatisfy { $0 })
        #expect(isKept.filter { $0 }.count == cache.statistics.entries)
    }

    @Test func anEntryAskedForAgainGetsASecondRoundAndNoThird() {
        let names = Self.namesOfOneSegment(4000, seed: (3, 4))
        cache.store(address(1, of: names[0]), to: names[0], type: .a, for: everyone, at: 0)
        cache.store(address(1, of: names[1]), to: names[1], type: .a, for: everyone, at: 0)
        #expect(cache.ask(names[0].description, at: 0) != nil)
        var lostAt: [Int: Int] = [:]
        for (number, name) in names.enumerated().dropFirst(2) {
            cache.store(address(1, of: name), to: name, type: .a, for: everyone, at: 0)
            for kept in [0, 1] where lostAt[kept] == nil {
                if cache.find(names[kept], type: .a, for: plain, at: 0) == nil { lostAt[kept] = number }
            }
        }
        let (second, first) = (lostAt[0] ?? 0, lostAt[1] ?? 0)
        #expect(first > 500)
        #expect(abs(second - 2 * first) < 20, "\(first) \(second)")
    }

    @Test func aFloodOfNamesAskedOnceLeavesTheHotOnes() {
        let cache = DNSCache(bytes: 4 << 20, seed: (3, 4))
        let hot = (0..<1000).map { Name("hot-\($0).example.com")! }
        for name in hot { cache.store(address(1, of: name, ttl: 3600), to: name, type: .a, for: everyone, at: 0) }
        var flood = Name("xxxxxxxx.flood.example")!.wire
        var answer = address(2, of: Name("xxxxxxxx.flood.example")!)
        var lost = 0
        for number in 0..<1_000_000 {
            // Each hot name is asked for twice while the flood goes once around the ring.
            if number % 20 == 0, cache.ask("hot-\(number / 20 % hot.count).example.com", at: 1) == nil { lost += 1 }
            // Letters 1 to 5 of the name; the answer's body begins with it.
            for (at, shift) in zip(1..., stride(from: 0, to: 20, by: 4)) {
                flood[at] = UInt8(ascii: "a") + UInt8(number >> shift & 15)
                answer.body[at] = flood[at]
            }
            let name = Name(wire: flood.span, at: 0, length: flood.count)
            cache.store(answer, to: name, type: .a, for: everyone, at: 0)
        }
        #expect(lost == 0)
        #expect(cache.statistics.evictions > 900_000)
        #expect(hot.allSatisfy { cache.ask($0.description, at: 1) != nil })
    }

    @Test func whenEverythingIsHotAStoreTakesBoundedWork() {
        var ring = Ring(bytes: 1 << 18)
        var number: UInt32 = 0
        func store(_ ring: inout Ring) {
            let name = Name("n\(100_000 + number).example")!
            let hash = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
            let answer = address(number, of: name)
            let entry = Entry(
                answer, nameLength: name.wire.count, audience: .everyone, hash: Ring.tag(hash), now: 0)
            _ = ring.append(entry, body: answer.body.span, hash: hash)
            number += 1
        }
        func offsets(_ ring: borrowing Ring) -> [Int] {
            var (offsets, position) = ([Int](), ring.start)
            while let offset = ring.nextOffset(&position, before: ring.end) { offsets.append(offset) }
            return offsets
        }
        while ring.evictions == 0 { store(&ring) }
        let full = ring.liveEntries
        #expect(full > 4 * Ring.maximumSpared)
        for _ in 0..<3 {
            for offset in offsets(ring) {
                var entry = ring.entry(at: offset)
                entry.flags.insert(.referenced)
                ring.update(at: offset, entry)
            }
            let before = ring.evictions
            store(&ring)
            let referenced = offsets(ring).count { ring.entry(at: $0).flags.contains(.referenced) }
            // Each spared one lost its mark; so many were looked at and no more.
            #expect(referenced >= full - Ring.maximumSpared - 4)
            #expect(ring.evictions > before)
            #expect(ring.liveEntries >= full - 4)
        }
    }

    // MARK: The hit path

    @Test(.enabled(if: allocationsAreCounted(), "under a sanitizer allocations are not counted"))
    func aHitAllocatesNothing() {
        let cache = DNSCache(bytes: 1 << 20, prefetchAt: 75, seed: (3, 4))
        let name = Name("www.example.com")!
        cache.store(address(1, of: name), to: name, type: .a, for: everyone, at: 0)
        let query = Query.message(id: 1, name, type: .a, dnssecOK: true, checkingDisabled: false)
        var reply = [UInt8](repeating: 0, count: 1232)
        var hits = 0
        func hit(_ count: Int) {
            var out = reply.mutableSpan
            for _ in 0..<count {
                guard case .question(let question) = Question.read(query.span) else { continue }
                if cache.answer(
                    question, cache.key(question, query: query.span), query: query.span, at: 50, limit: 1232, into: &out
                ) != .miss {
                    hits += 1
                }
            }
        }
        // Once before, for what is set up lazily.
        hit(10)
        let before = allocationsOfThisThread()
        hit(2000)
        #expect(allocationsOfThisThread() == before)
        #expect(hits == 2010)
    }
}
