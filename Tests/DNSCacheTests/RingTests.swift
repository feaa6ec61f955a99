import Base
import DNSWire
import TestSupport
import Testing

@testable import DNSCache

/// The ring against a dictionary: whatever it finds is the last that was stored, and its own books are right.
@Suite struct RingTests {
    private struct Key: Hashable {
        var name: Int
        var type: RecordType
    }

    /// Sizes that end laps at every alignment.
    @Test(arguments: [4_000, 4_104, 7_777, 65_536], [UInt64(1), 2])
    func whatIsFoundIsWhatWasStoredLast(bytes: Int, seed: UInt64) {
        print("seed \(seed), \(bytes) bytes")
        var chance = Chance(seed: seed)
        var segment = Segment(bytes: bytes, staleSeconds: 0, prefetchAt: 0)
        var model: [Key: Answer] = [:]
        let names = (0..<300).map { Name("\(String(repeating: "x", count: $0 % 40))n\($0).example")! }
        let types: [RecordType] = [.a, .txt, .aaaa]
        let hash = NameHash(keys: (seed, 99))
        var reply = [UInt8](repeating: 0, count: 20_000)
        for step in 0..<25_000 {
            let key = Key(name: chance.below(names.count), type: types[chance.below(types.count)])
            let name = names[key.name]
            let hash = hash(name.wire.span, name: 0..<name.wire.count, type: key.type.rawValue)
            switch chance.below(100) {
            case 0:
                _ = segment.removeAll(in: .only(name))
                model = model.filter { $0.key.name != key.name }
            case 1 where chance.below(50) == 0:
                _ = segment.removeAll(in: .all)
                model = [:]
            case 2..<60:
                let length = name.wire.count + 16 + (chance.below(20) == 0 ? chance.below(bytes / 3) : chance.below(90))
                var answer = filler(name, bodyLength: length, octet: UInt8(step & 0xFF))
                // The body speaks of the type it is kept for.
                answer.body[name.wire.count + 1] = UInt8(key.type.rawValue)
                segment.store(answer, hash: hash, name, type: key.type, audience: .everyone, at: 0)
                model[key] = answer
            case 60..<80:
                // A hit, so that it is spared.
                let query = Query.message(id: 1, name, type: key.type, dnssecOK: false, checkingDisabled: false)
                guard case .question(let question) = Question.read(query.span) else { continue }
                var out = reply.mutableSpan
                let lookup = segment.answer(
                    hash: hash, question, query: query.span, at: 0, limit: 20_000, into: &out)
                if case .hit(let length) = lookup {
                    let expected = model[key]!.body
                    #expect(length == 12 + expected.count + 11, "step \(step)")
                    #expect(reply[12..<12 + expected.count].elementsEqual(expected), "step \(step)")
                }
            default:
                if let found = segment.held(hash: hash, name, type: key.type, audience: plain, at: 0) {
                    #expect(found.answer == model[key], "step \(step)")
                }
            }
            if step % 97 == 0 { segment.check("step \(step)") }
        }
        segment.check("end")
        var statistics = DNSCache.Statistics()
        segment.add(to: &statistics)
        #expect(statistics.evictions > 1000 || bytes > 60_000)
        #expect(statistics.entries > 0)
    }

    /// A record that ends exactly where the ring does, and ones a little shorter and longer.
    @Test(arguments: 0..<24)
    func aLapEndsCleanly(_ shift: Int) {
        var segment = Segment(bytes: 4096, staleSeconds: 0, prefetchAt: 0)
        let names = (0..<40).map { Name("n\($0).example")! }
        let hash = NameHash(keys: (5, 6))
        for round in 0..<400 {
            let name = names[round % names.count]
            let answer = filler(name, bodyLength: 64 + shift * 8 + round % 3 * 8, octet: UInt8(round & 0xFF))
            let key = hash(name.wire.span, name: 0..<name.wire.count, type: RecordType.txt.rawValue)
            segment.store(answer, hash: key, name, type: .txt, audience: .everyone, at: 0)
            #expect(segment.held(hash: key, name, type: .txt, audience: plain, at: 0)?.answer == answer)
            segment.check("round \(round)")
        }
    }

    /// A record of 4096 octets is short: it takes nothing of the share of the long ones, and none of them makes room for it.
    @Test func theLongestShortRecordIsShort() {
        var segment = Segment(bytes: 1 << 17, staleSeconds: 0, prefetchAt: 0)
        let hash = NameHash(keys: (7, 8))
        func key(_ number: Int) -> (Name, UInt64) {
            let name = Name("n\(number).example")!
            return (name, hash(name.wire.span, name: 0..<name.wire.count, type: RecordType.txt.rawValue))
        }
        // The fourth takes most of an eighth of the ring.
        for (number, extent) in [4096, 4096, 4096, 12_000, 4096].enumerated() {
            let (name, key) = key(number)
            segment.store(
                filler(name, bodyLength: extent - Entry.size), hash: key, name, type: .txt, audience: .everyone, at: 0)
            segment.check("\(number)")
        }
        for number in 0..<5 {
            let (name, key) = key(number)
            #expect(segment.held(hash: key, name, type: .txt, audience: plain, at: 0) != nil, "\(number)")
        }
    }

    @Test func equalHashesAreToldApartByTheirNames() {
        var segment = Segment(bytes: 1 << 16, staleSeconds: 0, prefetchAt: 0)
        let names = (0..<100).map { Name("n\($0).example")! }
        for (number, name) in names.enumerated() {
            segment.store(
                address(UInt32(number), of: name), hash: 42, name, type: .a, audience: .everyone, at: 0)
        }
        for (number, name) in names.enumerated() where number % 2 == 0 {
            #expect(segment.removeAll(in: .only(name)) == 1, "\(number)")
        }
        for (number, name) in names.enumerated() {
            let found = segment.held(hash: 42, name, type: .a, audience: plain, at: 0)
            #expect(found?.answer == (number % 2 == 0 ? nil : address(UInt32(number), of: name)))
        }
        segment.check("end")
    }
}

extension Segment {
    /// The books of the ring: every live record is found through its chain, none twice, and the sums are right.
    func check(_ when: String) {
        var statistics = DNSCache.Statistics()
        add(to: &statistics)
        var live: Set<Int> = []
        var bytes = 0
        var longBytes = 0
        var position = ring.start
        while let offset = ring.nextOffset(&position, before: ring.end) {
            live.insert(offset)
            let extent = ring.entry(at: offset).extent
            bytes += extent
            if extent > 4096 { longBytes += extent }
        }
        #expect(longBytes <= ring.capacity / 8, "\(when)")
        #expect(live.count == statistics.entries, "\(when)")
        #expect(bytes == statistics.bytes, "\(when)")
        #expect(bytes <= ring.capacity, "\(when)")
        for offset in live {
            let entry = ring.entry(at: offset)
            let body = ring.body(at: offset, length: Int(entry.bodyLength)).span
            let end = Int(entry.nameLength)
            let found = ring.offset(
                hash: UInt64(entry.hash), body, name: 0..<end, type: UInt16(body[end]) << 8 | UInt16(body[end + 1]),
                serving: entry.flags.intersection(.audience))
            #expect(found == offset, "\(when)")
        }
    }
}
