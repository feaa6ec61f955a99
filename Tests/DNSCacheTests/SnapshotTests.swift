import Base
import DNSWire
import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import DNSCache

/// The cache outside the process: what comes back is what was there, older; and nothing else ever does.
@Suite struct SnapshotTests {
    private let name = Name("www.example.com")!
    private static let boot: UInt128 = 0x0123_4567_89AB_CDEF_FEDC_BA98_7654_3210
    /// 1010 seconds after the machine's start.
    private static let then = DNSCache.Moment(wall: 1_700_000_000, tick: 1010, boot: boot)

    private static func cache(megabytes: Int = 1, staleSeconds: UInt32 = 0, seed: UInt64 = 1) -> DNSCache {
        DNSCache(bytes: megabytes << 20, staleSeconds: staleSeconds, prefetchAt: 75, seed: (seed, ~seed))
    }

    // MARK: The form

    /// The same written from the description of the form by python's `struct` and whole numbers: header, one block with one
    /// record, the end.
    @Test func theFormIsTheOneDescribed() {
        let cache = Self.cache()
        let answer = Answer.addresses(name, type: .a, [IPAddress.v4(192, 0, 2, 1)], ttl: 60)
        cache.obey { _, _, _ in 0x0102_0304 }
        cache.store(answer, to: name, type: .a, for: everyone, at: 1000)
        let expected = [
            "68747470646e736400000006000003f2000000006553f1000123456789abcdeffedcba987654321032fa5e3f",
            "0000003d000000010000000082ed8711",
            "0000000a0000003c00257800000100000000000001020304",
            "03777777076578616d706c6503636f6d0000010001c00c000100010000003c0004c0000201",
            "000000000000000000000001fbba2048",
        ].joined()
        #expect(hexadecimal(cache.snapshot(at: Self.then)) == expected)
    }

    /// An answer serves clients with CD as well; theirs comes when it has ended, and both are in the snapshot.
    @Test(arguments: [0, 1, 40] as [UInt32]) func theAnswerOfClientsThatDoNotCheckIsRestoredBesideTheOther(
        later: UInt32
    ) throws {
        let old = Self.cache(staleSeconds: 1000)
        for (number, audience, at) in [(1, plain, 1000), (2, unchecked, 1000 + later)] as [(UInt8, Audience, UInt32)] {
            let answer = Answer.addresses(
                name, type: .a, [IPAddress.v4(192, 0, 2, number)], ttl: later > 0 ? later : 60)
            old.store(answer, to: name, type: .a, for: audience, at: at)
        }
        let now = DNSCache.Moment(wall: 1_700_000_000, tick: 1000 + later, boot: Self.boot)
        let new = Self.cache(staleSeconds: 1000, seed: 2)
        let count = try new.restore(old.snapshot(at: now), at: now)
        #expect(count == old.statistics.entries)
        for audience in [plain, unchecked] {
            let before = old.find(name, type: .a, for: audience, at: now.tick)
            #expect(before != nil && new.find(name, type: .a, for: audience, at: now.tick) == before)
        }
        // What is there already is not restored again.
        #expect(try new.restore(old.snapshot(at: now), at: now) == 0)
    }

    /// As python's whole numbers have it (Tests/Fuzz/seeds.py).
    @Test(
        arguments: [
            ([UInt8](repeating: 0, count: 32), 0x360E_DFCE, 0x1AD6_F2BF),
            ([UInt8](repeating: 0xFF, count: 32), 0xB59D_84CA, 0x04DB_A25F),
            (Array(0..<32), 0xF5FD_0D25, 0x99C0_994F), (Array("123456789".utf8), 0x26E1_AF17, 0x4DB0_7CB5),
            ([], 0x2D1A_AC79, 0xA927_E207),
        ] as [([UInt8], UInt32, UInt32)])
    func checksum(_ bytes: [UInt8], _ expected: UInt32, after: UInt32) {
        #expect(Checksum.of(bytes.span, 0..<bytes.count) == expected)
        #expect(Checksum.of(([1] + bytes + [2]).span, 1..<bytes.count + 1, after: 0x0102_0304) == after)
    }

    /// Each bit of it, each octet less or more at its end, each two octets that are swapped.
    @Test func whateverIsChangedHasAnotherChecksum() {
        let bytes = (0..<100).map { UInt8(truncatingIfNeeded: $0 &* 37) }
        func checksum(_ bytes: [UInt8]) -> UInt32 { Checksum.of(bytes.span, 0..<bytes.count) }
        var seen: Set<UInt32> = [checksum(bytes)]
        func check(_ changed: [UInt8]) { #expect(seen.insert(checksum(changed)).inserted, "\(changed)") }
        for bit in 0..<8 * bytes.count {
            var changed = bytes
            changed[bit / 8] ^= 1 << (bit % 8)
            check(changed)
        }
        for length in 0..<bytes.count { check(Array(bytes[..<length])) }
        for length in 1...100 { check(bytes + [UInt8](repeating: 0, count: length)) }
        for (first, second) in zip(bytes.indices, bytes.indices.dropFirst()) {
            var changed = bytes
            changed.swapAt(first, second)
            check(changed)
        }
    }

    // MARK: There and back

    @Test func everyKindOfAnswerComesBackOlder() throws {
        let old = Self.cache(megabytes: 32, staleSeconds: 100)
        var all: [(name: Name, type: RecordType, audience: Audience, answer: Answer)] = []
        func store(_ answer: Answer, _ name: Name, _ type: RecordType, _ audience: Audience) {
            old.store(answer, to: name, type: type, for: audience, at: 1000)
            all.append((name, type, audience, answer))
        }
        let audiences = [everyone] + allClients
        for (number, audience) in audiences.enumerated() {
            let name = Name("a\(number).example.com")!
            store(address(UInt32(number), of: name), name, .a, audience)
            var validated = Answer.noData(name, type: .aaaa, negativeTTL: 60, extendedError: .init(rawValue: 65534))
            validated.head.authenticData = true
            store(validated, name, .aaaa, audience)
            store(.nxDomain(name, type: .mx, negativeTTL: 60), name, .mx, audience)
            // The three sections.
            var sections = filler(name, bodyLength: 200)
            let record = sections.body.suffix(200 - name.wire.count - 4)
            sections.body += record + record + record
            (sections.head.authorityCount, sections.head.additionalCount) = (2, 1)
            store(sections, name, .txt, audience)
        }
        let root = Name.root
        store(.addresses(root, type: .a, [], ttl: 60), root, .a, everyone)
        let longest = Name(
            [63, 63, 63, 61].map { String(repeating: "x", count: $0) }.joined(separator: "."))!
        #expect(longest.wire.count == 255)
        store(.hinfo(longest, ttl: 60), longest, .any, everyone)
        // Every length around a slice and a block, and the longest of all.
        for length in [4060, 4072, 4096, 5000, 30_000, 65_000, 65_400, 65_515, 65_535] {
            let name = Name("t\(length).example.com")!
            store(filler(name, bodyLength: length, octet: 7), name, .txt, everyone)
        }
        for number in 0..<3000 {
            let name = Name("many-\(number).example.com")!
            store(address(UInt32(number), of: name), name, .a, everyone)
        }

        let new = Self.cache(megabytes: 32, staleSeconds: 100, seed: 2)
        #expect(old.statistics.entries == all.count)
        let later = DNSCache.Moment(wall: 1_700_000_020, tick: 1030, boot: Self.boot)
        #expect(try new.restore(old.snapshot(at: Self.then), at: later) == all.count)
        for (name, type, audience, answer) in all {
            for client in audience == everyone ? allClients : [audience] {
                let found = new.find(name, type: type, for: client, at: 1030)
                #expect(found?.answer == answer && found?.elapsed == 30 && found?.isFresh == true, "\(name) \(type)")
            }
            if audience == plain { #expect(new.find(name, type: type, for: signed, at: 1030) == nil) }
        }
        #expect(new.ask("a0.example.com", at: 1030)?.ttls == [30])
        #expect(new.ask("a0.example.com", at: 1046)?.isDueForRefresh == true)
        #expect(new.statistics.bytes == old.statistics.bytes)
        new.checkBooks()
        // And once more, from the copy.
        let third = Self.cache(megabytes: 32, staleSeconds: 100, seed: 3)
        #expect(try third.restore(new.snapshot(at: later), at: later) == all.count)
        #expect(third.find(longest, type: .any, for: plain, at: 1030)?.elapsed == 30)
    }

    @Test func anEmptyCacheComesBackEmpty() throws {
        let bytes = Self.cache().snapshot(at: Self.then)
        #expect(bytes.count == Snapshot.headerLength + Snapshot.blockHeaderLength)
        #expect(try Self.cache().restore(bytes, at: Self.then) == 0)
    }

    @Test func itIsWrittenInPartsOfBoundedLength() {
        let cache = Self.cache(megabytes: 32)
        for number in 0..<7_000 {
            let name = Name("t\(number).example.com")!
            // The longest there are have a share of the cache alone.
            let length = number < 400 ? 65_535 - number : 4_000 - number % 1_000
            cache.store(filler(name, bodyLength: length), to: name, type: .txt, for: everyone, at: 1000)
        }
        var parts: [Int] = []
        cache.writeSnapshot(at: Self.then) { parts.append($0.count) }
        #expect(parts.count > 100)
        #expect(parts.allSatisfy { $0 <= Snapshot.blockHeaderLength + Snapshot.largestBlock })
    }

    @Test func aWriterThatFailsEndsIt() {
        struct Full: Error {}
        let cache = Self.cache()
        cache.store(address(1, of: name), to: name, type: .a, for: everyone, at: 1000)
        var calls = 0
        #expect(throws: Full.self) {
            try cache.writeSnapshot(at: Self.then) { _ throws(Full) in
                calls += 1
                if calls == 2 { throw Full() }
            }
        }
        #expect(calls == 2)
        #expect(cache.ask("www.example.com", at: 1000) != nil)
    }

    @Test func itSaysWhenItHasChanged() throws {
        let cache = Self.cache(staleSeconds: 100)
        var last = cache.changes
        func isChanged() -> Bool {
            defer { last = cache.changes }
            return cache.changes != last
        }
        cache.store(address(1, of: name), to: name, type: .a, for: everyone, at: 1000)
        #expect(isChanged())
        let bytes = cache.snapshot(at: Self.then)
        _ = cache.ask("www.example.com", at: 1001)
        _ = cache.find(name, type: .a, for: plain, at: 1001)
        cache.remove(.only(Name("www.example.org")!))
        #expect(!isChanged())
        cache.remove(.only(name))
        #expect(isChanged())
        // The snapshot has what was forgotten, and must be written once more.
        #expect(try cache.restore(bytes, at: Self.then) == 0)
        #expect(isChanged())
        let other = Self.cache(staleSeconds: 100)
        last = other.changes
        #expect(try other.restore(bytes, at: Self.then) == 1)
        #expect(other.changes == last)
        other.remove(.all)
        #expect(other.changes != last)
    }

    // MARK: The time

    struct Case: Sendable {
        let what: String
        let now: DNSCache.Moment
        /// Nil: it is not there.
        let elapsed: UInt32?
        let isFresh: Bool

        init(_ what: String, _ now: DNSCache.Moment, _ elapsed: UInt32?, isFresh: Bool = false) {
            (self.what, self.now, self.elapsed, self.isFresh) = (what, now, elapsed, isFresh)
        }
    }

    /// An answer with a TTL of 60, 10 seconds old when written at tick 1010; stale for 3600 seconds.
    @Test(arguments: [
        Case("the same second", then, 10, isFresh: true),
        Case("same machine, 20 s later", .init(wall: 1_700_000_020, tick: 1030, boot: boot), 30, isFresh: true),
        Case(
            "same machine, wall clock a year back", .init(wall: 1_668_000_000, tick: 1040, boot: boot), 40,
            isFresh: true),
        Case("same machine, wall clock back but 50 s went by", .init(wall: 1_700_000_001, tick: 1060, boot: boot), 60),
        Case(
            "same machine, wall clock years ahead", .init(wall: 1_900_000_000, tick: 1020, boot: boot), 20,
            isFresh: true),
        Case("same machine, its own clock back: never true", .init(wall: 1_699_999_999, tick: 900, boot: boot), 60),
        Case("machine started anew, 30 s later", .init(wall: 1_700_000_030, tick: 25, boot: 5), 40, isFresh: true),
        Case("machine started anew, an hour later", .init(wall: 1_700_003_600, tick: 3, boot: 5), 3610),
        Case("started anew, the ticks as if 20 s went by", .init(wall: 1_700_000_300, tick: 1030, boot: 5), 310),
        Case("started anew, the last stale second", .init(wall: 1_700_003_649, tick: 3, boot: 5), 3659),
        Case("started anew, one more", .init(wall: 1_700_003_650, tick: 3, boot: 5), nil),
        Case("started anew, wall clock a second back", .init(wall: 1_699_999_999, tick: 3, boot: 5), 60),
        Case("started anew, wall clock at its beginning", .init(wall: 0, tick: 3, boot: 5), 60),
        Case("started anew, wall clock years ahead", .init(wall: 1_900_000_000, tick: 3, boot: 5), nil),
        Case("started anew, wall clock at its end", .init(wall: .max, tick: 3, boot: 5), nil),
        Case("start unknown, 30 s later", .init(wall: 1_700_000_030, tick: 2000), 40, isFresh: true),
        Case("start unknown, wall clock back", .init(wall: 1_699_999_999, tick: 2000), 60),
    ])
    func agesGoOn(_ given: Case) throws {
        let old = Self.cache(staleSeconds: 3600)
        old.store(address(1, of: name), to: name, type: .a, for: everyone, at: 1000)
        let new = Self.cache(staleSeconds: 3600, seed: 2)
        let taken = try new.restore(old.snapshot(at: Self.then), at: given.now)
        #expect(taken == (given.elapsed == nil ? 0 : 1))
        let found = new.find(name, type: .a, for: plain, at: given.now.tick)
        #expect(found?.elapsed == given.elapsed, "\(given.what)")
        #expect(found?.isFresh == given.elapsed.map { _ in given.isFresh })
        #expect((new.ask("www.example.com", at: given.now.tick) != nil) == given.isFresh)
        // And it goes on getting older.
        guard let elapsed = given.elapsed, elapsed < 3600 else { return }
        #expect(new.find(name, type: .a, for: plain, at: given.now.tick + 7)?.elapsed == elapsed + 7)
    }

    /// A file that claims to come from the future, or that two clocks that do not know the machine's start disagree on.
    @Test func aFileFromTheFutureIsOld() throws {
        for written: UInt64 in [1_700_000_001, 4_000_000_000, .max] {
            let old = Self.cache()
            old.store(address(1, of: name), to: name, type: .a, for: everyone, at: 1000)
            let bytes = old.snapshot(at: .init(wall: written, tick: 1000))
            let now = DNSCache.Moment(wall: 1_700_000_000, tick: 1000)
            #expect(try Self.cache(seed: 2).restore(bytes, at: now) == 0)
            let stale = Self.cache(staleSeconds: 5, seed: 2)
            #expect(try stale.restore(bytes, at: now) == 1)
            #expect(stale.find(name, type: .a, for: plain, at: 1000)?.isFresh == false)
            #expect(stale.find(name, type: .a, for: plain, at: 1005) == nil)
            // What is stale stays so, however often it is written and read with the clock going back.
            let again = Self.cache(staleSeconds: 5, seed: 3)
            let third = stale.snapshot(at: .init(wall: 2_000_000_000, tick: 1003))
            #expect(try again.restore(third, at: .init(wall: 1, tick: 2)) == 1)
            #expect(again.find(name, type: .a, for: plain, at: 2)?.elapsed == 63)
        }
    }

    /// It may have been off for a week while its clock stood still.
    @Test func afterAStartOfAMachineWithoutAClockEverythingIsOld() throws {
        let old = Self.cache(staleSeconds: 3600)
        old.store(address(1, of: name), to: name, type: .a, for: everyone, at: 1000)
        let bytes = old.snapshot(at: Self.then)
        let cases: [(UInt128?, UInt32, Bool)] = [(Self.boot, 1015, true), (1, 20, false), (nil, 20, true)]
        for (boot, tick, isFresh) in cases {
            let now = DNSCache.Moment(wall: Self.then.wall + 5, tick: tick, boot: boot, countsWhileOff: false)
            let new = Self.cache(staleSeconds: 3600, seed: 2)
            #expect(try new.restore(bytes, at: now) == 1)
            #expect(new.find(name, type: .a, for: plain, at: tick)?.isFresh == isFresh)
        }
    }

    @Test func whatCannotBeAnsweredAnyMoreIsNotWritten() {
        let cache = Self.cache(staleSeconds: 100)
        cache.store(address(1, of: name), to: name, type: .a, for: everyone, at: 1000)
        let empty = Self.cache().snapshot(at: Self.then).count
        #expect(cache.snapshot(at: .init(wall: 0, tick: 1159)).count > empty)
        #expect(cache.snapshot(at: .init(wall: 0, tick: 1160)).count == empty)
        cache.remove(.only(name))
        #expect(cache.snapshot(at: .init(wall: 0, tick: 1000)).count == empty)
    }

    @Test func agesThatCouldWrapAreNotTakenOver() throws {
        let old = Self.cache(staleSeconds: .max)
        old.store(address(1, of: name, ttl: 0x7FFF_FFFF), to: name, type: .a, for: everyone, at: 1000)
        let bytes = old.snapshot(at: .init(wall: 5, tick: 1000))
        for (elapsed, isTaken): (UInt64, Bool) in [
            (1 << 30, true), ((1 << 30) + 1, false), (1 << 31, false), (1 << 32, false), (.max - 5, false),
        ] {
            let new = Self.cache(staleSeconds: .max, seed: 2)
            #expect(try new.restore(bytes, at: .init(wall: 5 + elapsed, tick: 3)) == (isTaken ? 1 : 0), "\(elapsed)")
            #expect(new.find(name, type: .a, for: plain, at: 3)?.elapsed == (isTaken ? UInt32(elapsed) : nil))
        }
    }

    // MARK: Room and company

    @Test func ofMoreThanThereIsRoomForTheNewestAreTaken() throws {
        let old = Self.cache(megabytes: 8)
        let names = (0..<40_000).map { Name("host-\(100_000 + $0).example.com")! }
        old.store(addressesOf: names, at: 1000)
        #expect(old.statistics.evictions == 0)
        let new = Self.cache(megabytes: 1, seed: 2)
        let own = Name("learnt.meanwhile.example")!
        new.store(address(9, of: own), to: own, type: .a, for: everyone, at: 1010)
        let taken = try new.restore(old.snapshot(at: Self.then), at: Self.then)
        #expect(new.statistics.evictions == 0)
        #expect(new.statistics.entries == taken + 1)
        // Less a block, and what an uneven share costs.
        #expect(new.statistics.bytes > 850_000)
        #expect(new.find(own, type: .a, for: plain, at: 1010) != nil)
        let known = names.indices.filter { new.find(names[$0], type: .a, for: plain, at: 1010) != nil }
        #expect(known.count == taken)
        #expect(known.count { $0 >= names.count - taken } > taken * 9 / 10)
        new.checkBooks()
    }

    /// Short answers take more in the cache than in the file: long ones before them leave them the room.
    @Test func theNewestAreTakenAlsoWhereTheyGrowMost() throws {
        let old = Self.cache(megabytes: 8)
        for name in hosts(1000) {
            old.store(filler(name, bodyLength: 500), to: name, type: .txt, for: everyone, at: 1000)
        }
        let names = (0..<10_000).map { Name("host-\(100_000 + $0).example.com")! }
        old.store(addressesOf: names, at: 1000)
        #expect(old.statistics.evictions == 0)
        let new = Self.cache(megabytes: 1, seed: 2)
        let taken = try new.restore(old.snapshot(at: Self.then), at: Self.then)
        #expect(taken < 11_000 && new.statistics.evictions == 0)
        // What falls into a part that is full already is left out.
        #expect(names.suffix(500).count { new.find($0, type: .a, for: plain, at: 1010) != nil } > 50)
        new.checkBooks()
    }

    @Test func aFullCacheComesBack() throws {
        let old = Self.cache()
        old.store(addressesOf: hosts(30_000), at: 1000)
        let new = Self.cache(seed: 2)
        let taken = try new.restore(old.snapshot(at: Self.then), at: Self.then)
        #expect(taken > old.statistics.entries * 85 / 100)
        new.checkBooks()
        // Then it goes on as any cache.
        new.store(addressesOf: (0..<30_000).map { Name("other-\($0).example.com")! }, at: 1010)
        #expect(new.ask("other-29999.example.com", at: 1010) != nil)
        new.checkBooks()
    }

    @Test func whatWasStoredBeforeWins() throws {
        let cases: [(file: Audience, live: Audience, taken: Int)] = [
            (everyone, everyone, 0), (plain, plain, 0), (signed, everyone, 0), (everyone, signed, 0),
            (everyone, plain, 0), (signed, plain, 1), (plain, signedUnchecked, 1),
        ]
        for (file, live, expected) in cases {
            let old = Self.cache()
            old.store(address(1, of: name), to: name, type: .a, for: file, at: 1000)
            old.store(.noData(name, type: .aaaa, negativeTTL: 60), to: name, type: .aaaa, for: file, at: 1000)
            let new = Self.cache(seed: 2)
            new.store(address(2, of: name), to: name, type: .a, for: live, at: 1010)
            // The other type is not in the way.
            #expect(try new.restore(old.snapshot(at: Self.then), at: Self.then) == expected + 1, "\(file) \(live)")
            let client = live == everyone ? signed : live
            #expect(new.find(name, type: .a, for: client, at: 1010)?.answer == address(2, of: name))
            // Read twice, it is not there twice.
            #expect(try new.restore(old.snapshot(at: Self.then), at: Self.then) == 0)
            new.checkBooks()
        }
    }

    /// What decides about an answer goes with it, and says whether it may be given still.
    @Test func answersThatAreNotRightAnyMoreAreLeftOut() throws {
        let old = Self.cache()
        old.obey { Self.basis($0, $1, $2) }
        let audiences = [everyone, plain, signed, unchecked, signedUnchecked]
        for (number, audience) in audiences.enumerated() {
            let name = Name("n\(number).example.com")!
            old.store(address(1, of: name), to: name, type: .a, for: audience, at: 1000)
            old.store(filler(name, bodyLength: 500), to: name, type: .txt, for: audience, at: 1000)
        }
        let bytes = old.snapshot(at: Self.then)
        let new = Self.cache(seed: 2)
        new.obey { name, type, audience in
            if name == Name("n1.example.com")! { return type == .a ? 0 : 1 }
            return type == .txt && audience == signed ? 1 : Self.basis(name, type, audience)
        }
        let taken = new.restoreSnapshot(length: bytes.count, at: Self.then) { Array(bytes[$0]) }
        #expect(taken == (7, 3, nil))
        #expect(new.ask("n1.example.com", at: 1010) == nil && new.ask("n0.example.com", at: 1010) != nil)
        #expect(new.ask("n2.example.com", .txt, dnssecOK: true, at: 1010) == nil)
        #expect(new.ask("n2.example.com", dnssecOK: true, at: 1010) != nil)
        new.checkBooks()
    }

    /// The network's NAT64 prefix decides about AAAA, and is found after the file was read.
    @Test func answersForAAAAAreComparedAtTheirFirstUse() throws {
        let names = (0..<2).map { Name("n\($0).example.com")! }
        let old = Self.cache()
        old.obey { _, _, _ in 7 }
        for name in names {
            old.store(.noData(name, type: .aaaa, negativeTTL: 60), to: name, type: .aaaa, for: plain, at: 1000)
        }
        let new = Self.cache(seed: 2)
        new.obey { _, _, _ in 8 }
        #expect(try new.restore(old.snapshot(at: Self.then), at: Self.then) == 2)
        #expect(new.find(names[0], type: .aaaa, for: plain, at: 1010) == nil)
        new.obey { _, _, _ in 7 }
        #expect(names.map { new.ask("\($0)", .aaaa, at: 1010) != nil } == [false, true])
        new.checkBooks()
    }

    private static func basis(_ name: Name, _ type: RecordType, _ audience: Audience) -> Basis {
        let audiences = [everyone, plain, signed, unchecked, signedUnchecked]
        return Basis(audiences.firstIndex(of: audience)! + 1) << 24 | Basis(type.rawValue) << 8
            | Basis(name.wire[2])
    }

    /// A snapshot is read while the rules change and names are forgotten: neither is undone by it.
    @Test func whatIsReadLateIsNoNewerThanTheRulesAndTheFlushesOfThen() throws {
        let names = (0..<6).map { Name("n\($0).example.com")! }
        let old = Self.cache()
        old.obey { _, _, _ in 7 }
        for name in names { old.store(address(1, of: name), to: name, type: .a, for: plain, at: 1000) }
        let bytes = old.snapshot(at: Self.then)
        let new = Self.cache(seed: 2)
        new.obey { _, _, _ in 7 }
        // Before it begins.
        new.remove(.only(names[0]))
        let taken = new.restoreSnapshot(length: bytes.count, at: Self.then) { range in
            // While the block with all of them is read.
            if range.lowerBound > 0, range.count > 100 {
                new.obey { name, _, _ in name == names[1] ? 8 : 7 }
                new.remove(.only(names[2]))
            }
            return Array(bytes[range])
        }
        #expect(taken == (3, 1, nil))
        // And behind it.
        new.obey { name, _, _ in name == names[3] ? 9 : 7 }
        #expect(new.remove(.only(names[4])) == 1)
        #expect(names.map { new.ask("\($0)", at: 1010) != nil } == [false, false, false, false, false, true])
        // What was read once replaces nothing.
        #expect(try new.restore(bytes, at: Self.then) == 1)
        new.checkBooks()
    }

    @Test func fourThreadsAskWhileItIsReadAndWritten() throws {
        let old = Self.cache(megabytes: 4)
        let names = hosts(10_000)
        old.store(addressesOf: names, at: 1000)
        let bytes = old.snapshot(at: Self.then)
        let new = Self.cache(megabytes: 4, seed: 2)
        let flag = Flag()
        DispatchQueue.concurrentPerform(iterations: 6) { thread in
            switch thread {
            case 0:
                #expect((try? new.restore(bytes, at: Self.then)) != nil)
                flag.isDone.store(true, ordering: .releasing)
            case 1: Self.copyUntilDone(new, names, flag)
            default: Self.askUntilDone(new, names, flag, seed: UInt64(thread))
            }
        }
        #expect(new.statistics.entries == names.count)
        new.checkBooks()
    }

    /// Copies of a cache that changes under the hand are whole, too.
    private static func copyUntilDone(_ cache: DNSCache, _ names: [Name], _ flag: Flag) {
        var copies = 0
        while !flag.isDone.load(ordering: .acquiring) || copies == 0 {
            let copy = Self.cache(megabytes: 4, seed: 3)
            #expect((try? copy.restore(cache.snapshot(at: Self.then), at: Self.then)) != nil)
            for number in stride(from: 0, to: names.count, by: 997) {
                guard let found = copy.find(names[number], type: .a, for: plain, at: 1010) else { continue }
                #expect(found.answer.records().map(\.data) == [IPAddress(v4: UInt32(number)).description])
            }
            copies += 1
        }
    }

    private static func askUntilDone(_ cache: DNSCache, _ names: [Name], _ flag: Flag, seed: UInt64) {
        var chance = Chance(seed: seed)
        var steps = 0
        while !flag.isDone.load(ordering: .acquiring) || steps < 1000 {
            steps += 1
            let number = chance.below(names.count)
            let name = names[number]
            if chance.below(50) == 0 {
                // Learnt meanwhile: kept.
                let answer = address(UInt32(number), of: name, ttl: 61)
                cache.store(answer, to: name, type: .a, for: everyone, at: 1010)
                #expect(cache.find(name, type: .a, for: plain, at: 1010)?.answer == answer)
            } else if let seen = cache.ask(name.description, at: 1010) {
                #expect(seen.records == [IPAddress(v4: UInt32(number)).description])
            }
        }
    }

    private func change(_ segment: inout Segment, _ chance: inout Chance) {
        let hash = NameHash(keys: (5, 6))
        for _ in 0..<chance.below(60) {
            let name = Name("n\(chance.below(400)).example")!
            let key = hash(name.wire.span, name: 0..<name.wire.count, type: RecordType.txt.rawValue)
            let answer = filler(name, bodyLength: 40 + chance.below(chance.below(10) == 0 ? 4000 : 100))
            segment.store(answer, hash: key, name, type: .txt, audience: .everyone, at: 1010)
        }
        if chance.below(10) == 0 {
            let name = Name("n\(chance.below(400)).example")!
            _ = segment.removeAll(in: .only(name))
        }
        if chance.below(20) == 0 { _ = segment.removeAll(in: .all) }
    }

    /// A question waits for one slice at most: some dozens of answers.
    @Test func fewAreCopiedAtOnce() {
        var segment = Segment(bytes: 1 << 16, staleSeconds: 0, prefetchAt: 0)
        let hash = NameHash(keys: (5, 6))
        for number in 0..<300 {
            let name = Name("n\(number).example")!
            let key = hash(name.wire.span, name: 0..<name.wire.count, type: RecordType.a.rawValue)
            segment.store(
                address(UInt32(number), of: name), hash: key, name, type: .a, audience: .everyone, at: 1010)
        }
        #expect(segment.ring.end > 3 * 4096)
        var block = SnapshotBlock(after: 0)
        var position = 0
        segment.copy(&position, before: segment.ring.end, at: 1010, to: &block)
        #expect(!block.isEmpty && (4096..<4200).contains(position))
    }

    /// A ring that is written to, emptied and lapped between two slices.
    @Test func aRingThatMovesOnWhileItIsCopied() throws {
        print("seed 11")
        var chance = Chance(seed: 11)
        var segment = Segment(bytes: 20_000, staleSeconds: 0, prefetchAt: 0)
        for round in 0..<500 {
            change(&segment, &chance)
            var block = SnapshotBlock(after: 0)
            var position = 0
            let end = segment.ring.end
            while position < end {
                segment.copy(&position, before: end, at: 1010, to: &block)
                if chance.below(3) == 0 { change(&segment, &chance) }
            }
            segment.check("round \(round)")
            var whole = Snapshot.header(Self.then)
            for _ in block.isEmpty ? 1...1 : 1...2 {
                whole += block.sealed()
                block.begin()
            }
            let copy = Self.cache(seed: 3)
            #expect(throws: Never.self) { try copy.restore(repaired(whole), at: Self.then) }
            copy.checkBooks()
        }
    }
}

/// Says to the other threads that one has ended.
private final class Flag: Sendable {
    let isDone = Atomic(false)
}

extension DNSCache {
    func snapshot(at now: Moment) -> [UInt8] {
        var bytes: [UInt8] = []
        writeSnapshot(at: now) { bytes += $0 }
        return bytes
    }

    func restore(_ bytes: [UInt8], at now: Moment) throws(SnapshotError) -> Int {
        let (answers, _, fault) = restoreSnapshot(length: bytes.count, at: now) { Array(bytes[$0]) }
        if let fault { throw fault }
        return answers
    }

    func checkBooks() {
        for index in 0..<Self.segmentCount { segments[index].withLock { $0.check("segment \(index)") } }
    }
}

func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

/// A snapshot with its checksums made right, as far as its lengths can be followed: what a forger would do.
func repaired(_ snapshot: [UInt8]) -> [UInt8] {
    var bytes = snapshot
    guard bytes.count >= Snapshot.headerLength else { return bytes }
    func put(_ value: UInt32, at offset: Int) {
        for index in 0..<4 { bytes[offset + index] = UInt8(truncatingIfNeeded: value >> UInt32(24 - 8 * index)) }
    }
    let header = Snapshot.headerChecksum(bytes.span)
    put(header, at: Snapshot.headerLength - 4)
    var offset = Snapshot.headerLength
    while bytes.count - offset >= Snapshot.blockHeaderLength {
        let length = bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
        let end = offset + Snapshot.blockHeaderLength + length
        guard end <= bytes.count else { break }
        let block = Array(bytes[offset..<end])
        put(Snapshot.blockChecksum(block.span, after: header), at: offset + 12)
        offset = end
    }
    return bytes
}
