import Base
import DNSWire
import Testing

/// Only what belongs to the question is passed on.
struct AliasChainTests {
    private let asked = Name("evil.example")!

    /// A response in which all names are written in full.
    private func response(
        _ answer: [(String, RecordType, [UInt8])], authority: [(String, RecordType, [UInt8])] = [],
        additional: [(String, RecordType, [UInt8])] = [], type: RecordType = .a
    ) -> [UInt8] {
        var message: [UInt8] = [0x12, 0x34, 0x81, 0x80, 0, 1]
        for section in [answer, authority, additional] {
            message += [UInt8(section.count >> 8), UInt8(section.count & 0xFF)]
        }
        message += asked.wire + [UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF), 0, 1]
        for (owner, type, data) in answer + authority + additional {
            message += Wire.record(Name(owner)!.wire, type, data)
        }
        return message
    }

    private func records(_ message: [UInt8], type: RecordType = .a) throws -> [String] {
        try read(message, to: asked, type: type).answer.records().map { "\($0.section) \($0.name) \($0.type)" }
    }

    private let address: [UInt8] = [192, 0, 2, 1]

    @Test func recordsOfOtherNamesGo() throws {
        let bank: (String, RecordType, [UInt8]) = ("bank.example", .a, [6, 6, 6, 6])
        let message = response(
            [("evil.example", .a, address), bank], authority: [bank, ("example", .ns, asked.wire)], additional: [bank])
        #expect(try records(message) == ["answer evil.example A", "authority example NS"])
        // The answer's own time to live, not that of what went.
        #expect(try read(message, to: asked).answer.keep == 60)
    }

    @Test func theChainStaysInItsOrderAndWhatIsBesideItGoes() throws {
        let message = response([
            ("b.example", .a, address), ("x.example", .a, address),
            ("a.example", .cname, Name("b.example")!.wire), ("evil.example", .cname, Name("a.example")!.wire),
            ("x.example", .cname, Name("b.example")!.wire),
        ])
        #expect(
            try records(message) == ["answer evil.example CNAME", "answer a.example CNAME", "answer b.example A"])
    }

    /// Stub resolvers such as that of glibc find no address that comes before its alias.
    @Test(arguments: [0, 1, 2, 3, 4, 5])
    func aliasesComeBeforeTheirTargets(_ turn: Int) throws {
        let signature: [UInt8] = [0, 5] + [UInt8](repeating: 0, count: 16) + Name("example")!.wire + [1]
        let answer: [(String, RecordType, [UInt8])] = [
            ("evil.example", .cname, Name("a.example")!.wire), ("evil.example", .rrsig, signature),
            ("a.example", .cname, Name("b.other.test")!.wire), ("b.other.test", .a, address),
            ("b.other.test", .a, [192, 0, 2, 2]), ("b.other.test", .a, [192, 0, 2, 3]),
        ]
        let sent = Array(answer[turn...] + answer[..<turn])
        let reply = try read(response(sent, authority: [("other.test", .ns, Name("ns.test")!.wire)]), to: asked)
        let names = reply.answer.records().map { "\($0.name) \($0.type)" }
        #expect(
            names
                == [
                    "evil.example CNAME", "evil.example RRSIG", "a.example CNAME", "b.other.test A", "b.other.test A",
                    "b.other.test A", "other.test NS",
                ].sorted { rank($0) < rank($1) } || turn == 1 || turn == 2)
        #expect(names.map(rank) == names.map(rank).sorted())
        // The records of one name stay in the order of the server, which may have put the addresses into it.
        let addresses = sent.filter { $0.1 == .a }.map(\.2)
        #expect(reply.answer.records().filter { $0.type == .a }.map(\.rdata) == addresses)
        #expect(reply.answer.isCacheable && reply.answer.keep == 60)

        func rank(_ text: String) -> Int {
            ["evil.example", "a.example", "b.other.test", "other.test"].firstIndex { text.hasPrefix($0) } ?? -1
        }
    }

    @Test func theDNAMEComesBeforeItsTarget() throws {
        let message = response([
            ("evil.other.test", .a, address), ("example", .dname, Name("other.test")!.wire),
        ])
        #expect(try records(message) == ["answer example DNAME", "answer evil.other.test A"])
    }

    /// Whole, or a failure that says so: a chain that is cut off reads as a name without an address.
    @Test(arguments: [1, 8, 16, 17, 18, 40, 64, 65, 100, 500])
    func longChains(_ count: Int) throws {
        let names = ["evil.example"] + (1...count).map { "a\($0).example" }
        let aliases = zip(names, names.dropFirst()).map { ($0, RecordType.cname, Name($1)!.wire) }
        let whole = aliases + [(names[count], .a, address)]
        for sent in [whole, whole.reversed(), aliases.reversed()] {
            let reply = try read(response(Array(sent)), to: asked)
            guard count <= 64 else {
                #expect(reply.responseCode == .servFail && reply.answer.head.responseCode == .servFail)
                #expect(reply.answer.records().isEmpty && !reply.answer.isCacheable)
                #expect(reply.answer.extendedErrors == [.other])
                #expect(reply.answer.extendedErrorText == "more than 64 aliases, one behind the other")
                continue
            }
            #expect(reply.responseCode == .noError && reply.answer.isCacheable)
            #expect(reply.answer.records().map(\.name.description) == Array(names.prefix(sent.count)))
        }
    }

    @Test func circlesStayAsTheyAre() throws {
        let names = ["evil.example", "a.example", "b.example"]
        for last in names {
            let answer = zip(names, names.dropFirst() + [last]).map { ($0, RecordType.cname, Name($1)!.wire) }
            let reply = try read(response(answer.reversed()), to: asked)
            #expect(reply.answer.records().map(\.name.description) == names)
            #expect(reply.responseCode == .noError && !reply.answer.isCacheable)
        }
    }

    @Test func theDNAMEAboveStaysAndAnotherGoes() throws {
        let message = response([
            ("example", .dname, Name("other.test")!.wire), ("evil.example", .cname, Name("evil.other.test")!.wire),
            ("evil.other.test", .a, address), ("test.invalid", .dname, Name("x.test")!.wire),
        ])
        #expect(
            try records(message) == [
                "answer example DNAME", "answer evil.example CNAME", "answer evil.other.test A",
            ])
    }

    /// The CNAME that a server makes of it has no signature of its own (RFC 6672 §5.3.1).
    @Test(arguments: ["other.test", "another.test"])
    func theDNAMEOfACNAMEThatIsAskedForStays(_ target: String) throws {
        let signature: [UInt8] = [0, 39] + [UInt8](repeating: 0, count: 16) + Name("example")!.wire + [1]
        let message = response(
            [
                ("example", .dname, Name(target)!.wire), ("example", .rrsig, signature),
                ("evil.example", .cname, Name("evil.other.test")!.wire),
            ], type: .cname)
        let source = target == "other.test" ? ["answer example DNAME", "answer example RRSIG"] : []
        #expect(try records(message, type: .cname) == source + ["answer evil.example CNAME"])
    }

    /// RFC 6672 §3.1: some servers give the CNAME that they make of a DNAME a TTL of 0.
    @Test(arguments: [("other.test", UInt32(60)), ("another.test", 0)])
    func aCNAMEThatIsMadeOfADNAMELivesAsLong(_ target: String, _ ttl: UInt32) throws {
        let dname = ("example", RecordType.dname, Name(target)!.wire)
        var message = response([
            dname, ("evil.example", .cname, Name("evil.other.test")!.wire), ("evil.other.test", .a, address),
        ])
        let start = response([dname]).count + asked.wire.count + 4
        #expect(message[start..<start + 4].elementsEqual([0, 0, 0, 60]))
        message[start + 3] = 0
        let answer = try read(message, to: asked).answer
        #expect(answer.keep == ttl && answer.isCacheable)
        #expect(answer.records().first { $0.type == .cname }?.ttl == ttl)
    }

    /// It would give clients that keep it the sender's names for all others below its owner.
    @Test func aDNAMEThatLeadsNowhereGoes() throws {
        let signature: [UInt8] = [0, 39] + [UInt8](repeating: 0, count: 16) + Name("example")!.wire + [1]
        let label = [63] + [UInt8](repeating: 97, count: 63)
        let tooLong: [UInt8] = label + label + label + [57] + label[1...57] + [0]
        for target in [asked.wire, Name("other.test")!.wire, tooLong] {
            for answer: [(String, RecordType, [UInt8])] in [
                [("evil.example", .a, address)],
                [("evil.example", .cname, Name("a.test")!.wire), ("a.test", .a, address)],
            ] {
                let message = response(answer + [("example", .dname, target), ("example", .rrsig, signature)])
                #expect(try records(message) == answer.map { "answer \($0.0) \($0.1)" })
            }
        }
    }

    @Test func ofTheSignaturesAboveThatOfTheDNAMEStays() throws {
        let rest = [UInt8](repeating: 0, count: 16) + Name("example")!.wire + [1]
        let message = response([
            ("example", .dname, Name("other.test")!.wire), ("example", .rrsig, [0, 39] + rest),
            ("example", .rrsig, [0, 1] + rest), ("example", .dname, asked.wire),
            ("evil.example", .cname, Name("evil.other.test")!.wire), ("evil.other.test", .a, address),
        ])
        #expect(
            try records(message) == [
                "answer example DNAME", "answer example RRSIG", "answer evil.example CNAME", "answer evil.other.test A",
            ])
    }

    /// Below the end of the chain and above it: the proof that there is no such record belongs to the last name.
    @Test func theSOAOfTheLastNameStays() throws {
        let soa = Name.root.wire + Name.root.wire + [UInt8](repeating: 0, count: 20)
        let message = response(
            [("evil.example", .cname, Name("a.test")!.wire)],
            authority: [("test", .soa, soa), ("b.test", .soa, soa), ("b.a.test", .soa, soa)])
        #expect(try records(message) == ["answer evil.example CNAME", "authority test SOA"])
    }

    @Test func proofsOfAbsenceStayWhereverTheyStand() throws {
        let nsec = Name("z.example").map { $0.wire + [0, 1, 0x40] }!
        let signature: [UInt8] = [0, 47] + [UInt8](repeating: 0, count: 16) + Name("example")!.wire + [1]
        let ofAddress: [UInt8] = [0, 1] + [UInt8](repeating: 0, count: 16) + Name("example")!.wire + [1]
        let message = response(
            [],
            authority: [
                ("a.example", .nsec, nsec), ("a.example", .rrsig, signature), ("a.example", .rrsig, ofAddress),
            ])
        #expect(try records(message) == ["authority a.example NSEC", "authority a.example RRSIG"])
    }

    /// Names that repeat are compressed when the answer is longer than the smallest datagram.
    @Test func aLongAnswerIsCompressed() throws {
        let many = (0..<20).map { ("evil.example", RecordType.a, [192, 0, 2, UInt8($0)]) }
        let short = try read(response(Array(many.prefix(3))), to: asked).answer
        #expect(short.body.count == asked.wire.count + 4 + 3 * (asked.wire.count + 14))
        let long = try read(response(many), to: asked).answer
        #expect(long.body.count == asked.wire.count + 4 + 20 * 16)
        #expect(long.records().map(\.rdata) == many.map(\.2))
        #expect(long.records().allSatisfy { $0.name == asked })
    }

    /// In the types of RFC 1035 alone, and with the letters that people shall see.
    @Test func namesOfDataAreCompressedWhereThatIsAllowed() throws {
        let target = [7] + "Printer".utf8 + [4] + "Room".utf8 + Name("evil.example")!.wire
        let pointers = (0..<20).map { _ in ("evil.example", RecordType.ptr, target) }
        let services = (0..<20).map { _ in ("evil.example", RecordType.srv, [0, 1, 0, 1, 0, 53] + target) }
        let first = try read(response(pointers, type: .ptr), to: asked, type: .ptr).answer
        #expect(first.body.count == asked.wire.count + 4 + 20 * 12 + (13 + 2) + 19 * 2)
        let lowercased = target.map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 ? $0 + 32 : $0 }
        #expect(first.records().allSatisfy { $0.rdata == lowercased })
        #expect(first.body.contains(UInt8(ascii: "P")))
        let second = try read(response(services, type: .srv), to: asked, type: .srv).answer
        #expect(second.body.count == asked.wire.count + 4 + 20 * (12 + 6 + target.count))
        #expect(second.records().allSatisfy { $0.rdata.suffix(target.count) == lowercased[...] })
    }

    /// Names of a hundred labels, each a pointer chain: what is not passed on costs little.
    @Test func namesOfManyLabelsAreLeftOut() throws {
        var message: [UInt8] = [0x12, 0x34, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0] + asked.wire + [0, 1, 0, 1]
        var count = 0
        var target = 12
        // Chains of labels in TXT data, owners that point to them.
        while message.count < 60_000 {
            let owner = message.count
            message += [1, UInt8(97 + count % 26), 0xC0 | UInt8(target >> 8), UInt8(target & 0xFF)]
            message += [0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]
            target = count % 100 == 99 || owner >= 0x3FFF ? 12 : owner
            count += 1
        }
        (message[6], message[7]) = (UInt8(count >> 8), UInt8(count & 0xFF))
        #expect(throws: WireError.tooManyLabels) { try read(message, to: asked) }
    }

    /// The longest name is written once, and each of 4,000 records points to it.
    @Test func oneLongNameForManyRecordsIsRead() throws {
        let labels = (0..<100).flatMap { _ in [1, UInt8(ascii: "b")] }
        let target = labels + asked.wire
        var message = response([("evil.example", .cname, target)])
        let at = message.count - target.count
        for _ in 0..<4000 {
            message += [0xC0 | UInt8(at >> 8), UInt8(at & 0xFF), 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]
        }
        (message[6], message[7]) = (UInt8(4001 >> 8), UInt8(4001 & 0xFF))
        #expect(try read(message, to: asked).answer.addresses.count == 4000)
    }

    /// As many servers of a zone, each with an address, as a message has room for.
    @Test func theLongestHonestMessageIsRead() throws {
        let servers = (0..<1000).map { "host\($0).some.where.evil.example" }
        let reply = try read(
            response(
                servers.map { ("evil.example", .ns, Name($0)!.wire) },
                additional: servers.prefix(300).map { ($0, .a, address) }, type: .ns), to: asked, type: .ns)
        #expect(reply.answer.records().count == 1000)
    }
}
