import Base
import DNSWire
import TestSupport
import Testing

@testable import DNSCache

/// Snapshots that a disk, a stranger or an attacker has had in hand.
@Suite struct HostileSnapshotTests {
    private static let then = DNSCache.Moment(wall: 1_700_000_000, tick: 1010, boot: 77)

    private static func cache(seed: UInt64) -> DNSCache {
        DNSCache(bytes: 1 << 20, staleSeconds: 100, prefetchAt: 75, seed: (seed, ~seed))
    }

    /// Seven answers of different kinds.
    private static let small: [UInt8] = {
        let cache = HostileSnapshotTests.cache(seed: 1)
        let name = Name("www.example.com")!
        func store(_ answer: Answer, _ type: RecordType, _ audience: Audience) {
            cache.store(answer, to: name, type: type, for: audience, at: 1000)
        }
        store(address(1, of: name), .a, everyone)
        store(.addresses(name, type: .aaaa, [IPAddress("2001:db8::1")!], ttl: 60), .aaaa, everyone)
        store(.nxDomain(name, type: .mx, negativeTTL: 60), .mx, plain)
        store(.noData(name, type: .mx, negativeTTL: 60, extendedError: .staleAnswer), .mx, signed)
        store(filler(name, bodyLength: 80), .txt, signedUnchecked)
        store(.hinfo(name, ttl: 60), .any, everyone)
        store(.pointers(name, [Name("a.example.com")!, Name("b.example.com")!], ttl: 60), .ptr, unchecked)
        return cache.snapshot(at: then)
    }()

    @Test func itIsTakenOverUntouched() throws {
        #expect(try Self.cache(seed: 2).restore(Self.small, at: Self.then) == 7)
    }

    /// The octets of the block that ends a snapshot; all answers stand before it.
    private static let end = 16

    @Test func everyTruncationIsSeen() {
        for length in 0..<Self.small.count {
            let cache = Self.cache(seed: 2)
            #expect(throws: SnapshotError.truncated, "\(length)") {
                try cache.restore(Array(Self.small[..<length]), at: Self.then)
            }
            #expect(cache.statistics.entries == (length < Self.small.count - Self.end ? 0 : 7), "\(length)")
        }
    }

    @Test func everyFlippedBitIsSeen() {
        let cache = Self.cache(seed: 2)
        for bit in 0..<Self.small.count * 8 {
            var bytes = Self.small
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: SnapshotError.self, "bit \(bit)") { try cache.restore(bytes, at: Self.then) }
            #expect(cache.statistics.entries == (bit / 8 < Self.small.count - Self.end ? 0 : 7), "bit \(bit)")
            cache.removeAll()
        }
    }

    @Test func whatIsWrongIsSaid() throws {
        let cache = Self.cache(seed: 2)
        func error(_ bytes: [UInt8]) -> SnapshotError? {
            cache.restoreSnapshot(length: bytes.count, at: Self.then) { Array(bytes[$0]) }.fault
        }
        func changed(_ offset: Int, to octet: UInt8) -> [UInt8] {
            var bytes = Self.small
            bytes[offset] = octet
            return bytes
        }
        #expect(error([]) == .truncated)
        #expect(error(Array("# a configuration file\n".utf8)) == .foreign)
        #expect(error(Array("\u{7F}ELF".utf8)) == .foreign)
        #expect(error([UInt8](repeating: 0, count: 100_000)) == .foreign)
        #expect(error(changed(11, to: 1)) == .version(1))
        #expect(error(changed(20, to: 9)) == .damaged(at: 0))
        #expect(error(changed(44, to: 0xFF)) == .damaged(at: 44))
        #expect(error(changed(108, to: 0xEE)) == .damaged(at: 44))
        // The block of another snapshot.
        let other = Self.cache(seed: 3).snapshot(at: .init(wall: 1, tick: 2))
        #expect(error(Array(other[..<44] + Self.small[44...])) == .damaged(at: 44))
        #expect(cache.statistics.entries == 0)
        // Only what stands behind the end.
        #expect(error(Self.small + [0]) == .damaged(at: Self.small.count))
        #expect(error(Self.small + Self.small) == .damaged(at: Self.small.count))
        #expect(cache.statistics.entries == 7)
    }

    /// Blocks before the first that is not at its offset, or not as it was written, are taken over; none behind it is.
    @Test func whatStandsBeforeTheFaultIsTakenOver() throws {
        let old = DNSCache(bytes: 4 << 20, seed: (1, 2))
        old.store(addressesOf: hosts(8000), at: 1000)
        var parts: [[UInt8]] = []
        old.writeSnapshot(at: Self.then) { parts.append($0) }
        #expect(parts.count > 6)
        var (offset, answers) = (parts[0].count, 0)
        func check(_ changed: [[UInt8]], _ at: Int, _ taken: Int, _ what: String) {
            let (cache, bytes) = (DNSCache(bytes: 4 << 20, seed: (3, 4)), Array(changed.joined()))
            let (count, _, fault) = cache.restoreSnapshot(length: bytes.count, at: Self.then) { Array(bytes[$0]) }
            #expect(count == taken && cache.statistics.entries == taken && fault == .damaged(at: at), "\(what)")
        }
        for index in 1..<parts.count - 1 {
            let records = parts[index][4..<8].reduce(0) { $0 << 8 | Int($1) }
            check(Array(parts[..<index] + parts[(index + 1)...]), offset, answers, "without \(index)")
            check(
                Array(parts[...index] + parts[index...]), offset + parts[index].count, answers + records,
                "\(index) twice")
            var flipped = parts
            flipped[index][100] ^= 1
            check(flipped, offset, answers, "a bit in \(index)")
            offset += parts[index].count
            answers += records
        }
        #expect(answers == 8000)
        parts.swapAt(1, 2)
        check(parts, parts[0].count, 0, "in another order")
    }

    /// The reader's own trouble, and a file that changes while it is read.
    @Test func aFileThatCannotBeReadOrChanges() {
        let small = Self.small
        var reads = 0
        _ = Self.cache(seed: 2).restoreSnapshot(length: small.count, at: Self.then) { range in
            reads += 1
            return Array(small[range])
        }
        #expect(reads == 5)
        let forged = repaired(
            small.indices.map { $0 == 44 ? 0x7F : small[$0] })
        for failing in 1...reads {
            let replacements: [([UInt8]) -> [UInt8]?] = [
                { _ in nil }, { Array($0.dropLast()) }, { $0 + [0] }, { _ in [] },
                { [UInt8](repeating: 0xFF, count: $0.count) },
            ]
            for replacement in replacements {
                var count = 0
                let restored = Self.cache(seed: 2).restoreSnapshot(length: small.count, at: Self.then) { range in
                    count += 1
                    return count == failing ? replacement(Array(small[range])) : Array(small[range])
                }
                #expect(restored.fault != nil && restored.answers == (failing < 4 ? 0 : 7))
            }
            var count = 0
            let cache = Self.cache(seed: 2)
            _ = cache.restoreSnapshot(length: small.count, at: Self.then) { range in
                count += 1
                return Array((count >= failing ? forged : small)[range])
            }
            cache.checkBooks()
        }
    }

    /// Octets changed, taken out, doubled, with the checksums made right again by someone who knows how: refused, or
    /// what is taken over answers its question with a message that can be read.
    @Test(arguments: 1...4)
    func mutationsDoNoHarm(_ seed: UInt64) {
        print("seed \(seed)")
        var chance = Chance(seed: seed)
        let interesting: [UInt8] = [0, 1, 2, 12, 16, 63, 64, 0x7F, 0x80, 0xC0, 0xFF]
        let cache = Self.cache(seed: seed)
        var taken = 0
        for step in 0..<25_000 {
            var bytes = Self.small
            for _ in 0...chance.below(3) {
                let at = chance.below(bytes.count)
                switch chance.below(8) {
                case 0: bytes.remove(at: at)
                case 1: bytes.insert(interesting[chance.below(interesting.count)], at: at)
                case 2...4: bytes[at] = interesting[chance.below(interesting.count)]
                default: bytes[at] = UInt8.random(in: 0...255, using: &chance)
                }
            }
            // The length of the one block, so that what is inside is reached.
            if chance.below(4) > 0, bytes.count >= 76 {
                let length = bytes.count - 76
                (bytes[44], bytes[45], bytes[46], bytes[47]) = (0, 0, UInt8(length >> 8), UInt8(length & 0xFF))
            }
            let now = DNSCache.Moment(wall: Self.then.wall, tick: UInt32(chance.below(2000)), boot: 77)
            let whole = repaired(bytes)
            let count = cache.restoreSnapshot(length: whole.count, at: now) { Array(whole[$0]) }.answers
            guard count > 0 else { continue }
            taken += count
            let asked = cache.askAll(at: now.tick, UInt32(chance.below(200)))
            #expect(asked == count, "seed \(seed), step \(step)")
            cache.removeAll()
        }
        #expect(taken > 5000)
    }
}

extension DNSCache {
    /// Asks for every entry, as the clients it is for, over UDP and TCP; each reply must be one that can be read.
    /// - Returns: how many entries there are.
    fileprivate func askAll(at now: UInt32, _ later: UInt32) -> Int {
        var questions: [(Name, RecordType, Entry.Flags)] = []
        for index in 0..<Self.segmentCount {
            segments[index].withLock { segment in
                segment.check("segment \(index)")
                var position = segment.ring.start
                while let offset = segment.ring.nextOffset(&position, before: segment.ring.end) {
                    let entry = segment.ring.entry(at: offset)
                    let body = segment.ring.body(at: offset, length: Int(entry.bodyLength)).span
                    let end = Int(entry.nameLength)
                    let name = Name(wire: body, at: 0, length: end)
                    let type = RecordType(rawValue: UInt16(body[end]) << 8 | UInt16(body[end + 1]))
                    questions.append((name, type, entry.flags))
                }
            }
        }
        for (name, type, flags) in questions {
            let dnssecOK = flags.isDisjoint(with: [.plain, .checkingDisabled])
            let checkingDisabled = flags.isDisjoint(with: [.plain, .dnssecOK])
            let client = Audience.those(dnssecOK: dnssecOK, checkingDisabled: checkingDisabled)
            let found = find(name, type: type, for: client, at: now)
            #expect(found != nil)
            let query = Query.message(
                id: 1, name, type: type, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled)
            guard case .question(let question) = Question.read(query.span) else {
                // A type that is no question: asked by nobody.
                continue
            }
            for limit in [512, 65_535] {
                var reply = [UInt8](repeating: 0, count: limit)
                var span = reply.mutableSpan
                switch answer(
                    question, key(question, query: query.span), query: query.span, at: now &+ later, limit: limit,
                    into: &span)
                {
                case .miss: #expect(later > 0 || found?.isFresh == false)
                case .hit(let length), .hitDueForRefresh(let length):
                    reply.removeLast(reply.count - length)
                    #expect(throws: Never.self) {
                        try Response.read(reply.span, id: 1, to: name, type: type, defaultNegativeTTL: 1)
                    }
                }
            }
        }
        return questions.count
    }
}

/// Bodies from outside: every rule they must keep, each broken once.
@Suite struct StoredAnswerTests {
    private static let name = Name("www.example.com")!

    /// Type CNAME, class, a TTL of 60, and as the name a pointer to the TTL's first octet.
    private static let aliasThroughTTL: [UInt8] = [0, 5, 0, 1, 0, 0, 0, 60, 0, 2, 0xC0, 39]

    private static func check(_ answer: Answer) throws(WireError) -> StoredAnswer.Question {
        let message = [UInt8](repeating: 0xFF, count: 12) + answer.body
        return try StoredAnswer.check(message.span, answer.head)
    }

    private static func error(_ change: (inout Answer) -> Void) -> WireError? {
        var answer = address(1, of: name)
        change(&answer)
        do throws(WireError) {
            _ = try check(answer)
            return nil
        } catch {
            return error
        }
    }

    @Test func whatTheFactoriesMakeIsRight() throws {
        let name = Self.name
        for answer in [
            address(1, of: name), .noData(name, type: .a, negativeTTL: 60), .nxDomain(name, type: .a, negativeTTL: 1),
            .hinfo(name, ttl: 60), .pointers(name, [name], ttl: 60), filler(name, bodyLength: 500),
            .failure(name, type: .a, .servFail, extendedError: nil), .addresses(.root, type: .a, [], ttl: 1),
        ] {
            let question = try Self.check(answer)
            #expect(question.nameLength == (answer.body[0] == 0 ? 1 : name.wire.count))
            let end = question.nameLength
            #expect(question.type.rawValue == UInt16(answer.body[end]) << 8 | UInt16(answer.body[end + 1]))
        }
    }

    @Test func eachRuleIsKept() {
        // Octets of the body: name 0..<17, type 17, class 19, then owner 21, type 23, class 25, TTL 27, length 31, data 33.
        #expect(Self.error { _ in } == nil)
        #expect(Self.error { $0.body[1] = 0x57 } == .mismatch)
        #expect(Self.error { $0.body[20] = 3 } == .mismatch)
        #expect(Self.error { $0.body.replaceSubrange(0..<2, with: [0xC0, 0x0C]) } == .badPointer(at: 12))
        #expect(Self.error { $0.body[0] = 0x40 } == .badLabel(at: 12))
        #expect(Self.error { $0.body.append(0) } == .trailingBytes(at: 49))
        #expect(Self.error { $0.body.removeLast() } == .truncated(at: 33))
        #expect(Self.error { $0.body.removeLast(17) } == .truncated(at: 29))
        #expect(Self.error { $0.head.answerCount = 0 } == .trailingBytes(at: 33))
        #expect(Self.error { $0.head.answerCount = 2 } == .truncated(at: 49))
        #expect(Self.error { $0.head.additionalCount = 65535 } == .truncated(at: 49))
        #expect(Self.error { $0.body[24] = 41 } == .badOption(at: 33))
        #expect(Self.error { $0.body[24] = 250 } == .badOption(at: 33))
        #expect(Self.error { $0.body[24] = 28 } == .badData(at: 45))
        #expect(Self.error { $0.body[27] = 0x80 } == .badData(at: 39))
        #expect(Self.error { $0.body[22] = 33 } == .badPointer(at: 33))
        #expect(Self.error { $0.body[22] = 11 } == .badPointer(at: 33))
        #expect(Self.error { $0.body.replaceSubrange(23..<25, with: [0, 5]) } == .badData(at: 45))
        #expect(Self.error { $0.body.replaceSubrange(23..., with: Self.aliasThroughTTL) } == .badPointer(at: 45))
        #expect(Self.error { $0.body = [] } == .truncated(at: 12))
    }
}
