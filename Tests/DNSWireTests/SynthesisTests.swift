import Base
import DNSWire
import Testing

/// RFC 6147: answers that are made of others.
@Suite struct SynthesisTests {
    private static let asked = Name("www.example.com")!
    private static let prefix = NAT64Prefix(Network("2001:db8:64::/96")!)!
    private static let pointer: [UInt8] = [0xC0, 0x0C]

    private static func record(_ owner: [UInt8], _ type: RecordType, _ data: [UInt8], ttl: UInt8 = 60) -> [UInt8] {
        owner + [UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF), 0, 1, 0, 0, 0, ttl]
            + [UInt8(data.count >> 8), UInt8(data.count & 0xFF)] + data
    }

    private static func answer(
        _ type: RecordType, _ answers: [[UInt8]], authority: [[UInt8]] = [], to name: Name = asked,
        _ code: ResponseCode = .noError
    ) -> Answer {
        let head = AnswerHead(
            responseCode: code, authenticData: true, answerCount: UInt16(answers.count),
            authorityCount: UInt16(authority.count))
        let question = name.wire + [UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF), 0, 1]
        return Answer(
            head: head, body: question + (answers + authority).flatMap { $0 }, keep: 60, isCacheable: true)
    }

    private static func absence(_ ttl: UInt32) -> Answer { .noData(asked, type: .aaaa, negativeTTL: ttl) }

    private static func texts(_ answer: Answer?) -> [String]? { answer?.records().map { "\($0.section) \($0)" } }

    @Test func addressesMoveUnderThePrefix() throws {
        let a = Self.answer(
            .a,
            [Self.record(Self.pointer, .a, [192, 0, 2, 1]), Self.record(Self.pointer, .a, [192, 0, 2, 2], ttl: 30)])
        let made = try #require(a.synthesized(under: Self.prefix, after: Self.absence(40)))
        #expect(
            Self.texts(made) == [
                "answer www.example.com. 40 IN AAAA 2001:db8:64::c000:201",
                "answer www.example.com. 30 IN AAAA 2001:db8:64::c000:202",
            ])
        #expect(made.keep == 40)
        #expect(!made.head.authenticData)
        #expect(made.addresses.count == 2)
    }

    @Test("RFC 6147 §5.1.7: without an SOA, 600 s")
    func lifetimeWithoutSOA() throws {
        var a = Answer.addresses(Self.asked, type: .a, [.v4(192, 0, 2, 1)], ttl: 3600)
        let failure = Answer.failure(Self.asked, type: .aaaa, .servFail, extendedError: nil)
        #expect(try #require(a.synthesized(under: Self.prefix, after: failure)).keep == 600)
        a.keep = 5
        #expect(try #require(a.synthesized(under: Self.prefix, after: failure)).keep == 5)
    }

    @Test("RFC 6147 §5.1.5: aliases stay, wherever their names are written")
    func aliases() throws {
        // `target` stands in the alias's data, and what comes behind points there.
        let alias = Self.record(Self.pointer, .cname, [6] + Array("target".utf8) + [0xC0, 0x10])
        let owner: [UInt8] = [0xC0, UInt8(12 + Self.asked.wire.count + 4 + 12)]
        let a = Self.answer(
            .a,
            [
                alias, Self.record(owner, .a, [192, 0, 2, 1]), Self.record(owner, .a, [127, 0, 0, 1]),
                Self.record(owner, .a, [192, 0, 2, 2]),
            ], authority: [Self.record(owner, .ns, Self.pointer)])
        let made = try #require(a.synthesized(under: Self.prefix, after: Self.absence(600)))
        #expect(
            Self.texts(made) == [
                "answer www.example.com. 60 IN CNAME target.example.com.",
                "answer target.example.com. 60 IN AAAA 2001:db8:64::c000:201",
                "answer target.example.com. 60 IN AAAA 2001:db8:64::c000:202",
            ])
    }

    @Test func whereNoAddressMayBeTranslatedThereIsNoAnswer() {
        let a = Answer.addresses(Self.asked, type: .a, [.v4(127, 0, 0, 1), .v4(0, 0, 0, 0)], ttl: 60)
        #expect(a.synthesized(under: Self.prefix, after: Self.absence(60)) == nil)
        #expect(Self.absence(60).synthesized(under: Self.prefix, after: Self.absence(60)) == nil)
    }

    @Test(arguments: [1, 2300, 2310, 2321, 4000])
    func asManyAsAMessageHolds(_ count: Int) throws {
        let addresses = (0..<count).map { IPAddress(v4: 0x0808_0000 + UInt32($0)) }
        for longName in [
            Self.asked, Name([String](repeating: String(repeating: "a", count: 60), count: 4).joined(separator: "."))!,
        ] {
            let a = Answer.addresses(longName, type: .a, addresses, ttl: 60)
            let made = try #require(a.synthesized(under: Self.prefix, after: Self.absence(60)))
            #expect(made.addresses.count >= min(count, 2300))
            #expect(made.addresses == addresses.prefix(made.addresses.count).map { Self.prefix.address(of: $0)! })
            #expect(made.body.count <= 65_535 - 512)
        }
    }

    @Test("RFC 6052 §3.1, RFC 7050 §3: the addresses of ipv4only.arpa are translated at that name alone")
    func addressesOfIPv4Only() throws {
        let (well, known) = (IPAddress.v4(192, 0, 0, 170), IPAddress.v4(192, 0, 0, 171))
        let elsewhere = Answer.addresses(Self.asked, type: .a, [well, .v4(192, 0, 2, 1), known], ttl: 60)
        #expect(
            try #require(elsewhere.synthesized(under: Self.prefix, after: Self.absence(60))).addresses
                == [IPAddress("2001:db8:64::192.0.2.1")!])
        #expect(
            Answer.addresses(Self.asked, type: .a, [well], ttl: 60).synthesized(
                under: .wellKnown, after: Self.absence(60))
                == nil)
        for prefix in [Self.prefix, .wellKnown] {
            let own = Answer.addresses(.ipv4Only, type: .a, [well, .v4(192, 0, 2, 1), known], ttl: 60)
            let made = try #require(own.synthesized(under: prefix, after: Self.absence(60)))
            #expect(made.addresses == [well, known].map { prefix.addressOfIPv4Only($0)! })
            #expect(NAT64Prefix.found(in: made.addresses) == [prefix])
        }
    }

    @Test func whatLacksAddresses() {
        #expect(Self.absence(60).lacksTheType)
        #expect(Answer.failure(Self.asked, type: .aaaa, .servFail, extendedError: nil).lacksTheType)
        #expect(!Answer.nxDomain(Self.asked, type: .aaaa, negativeTTL: 60).lacksTheType)
        let aaaa = Answer.addresses(Self.asked, type: .aaaa, [IPAddress("2001:db8::1")!], ttl: 60)
        #expect(!aaaa.lacksTheType)
        let alias = Self.answer(.aaaa, [Self.record(Self.pointer, .cname, [1, 0x61, 0xC0, 0x10])])
        #expect(alias.lacksTheType)
        #expect(!alias.isSigned)
        #expect(
            Self.answer(
                .aaaa, [], authority: [Self.record(Self.pointer, .rrsig, [0, 6] + [UInt8](repeating: 1, count: 20))]
            )
            .isSigned)
    }

    @Test("RFC 6147 §5.3.1: a reverse name under the prefix is an alias of the IPv4 address's")
    func pointers() throws {
        let target = Name("1.2.0.192.in-addr.arpa")!
        let ptr = Answer.pointers(target, [Name("host.example.com")!], ttl: 60)
        let name = Name.reverse(of: IPAddress("2001:db8:64::c000:201")!)
        #expect(
            Self.texts(ptr.aliased(from: name)) == [
                "answer \(name). 60 IN CNAME 1.2.0.192.in-addr.arpa.",
                "answer 1.2.0.192.in-addr.arpa. 60 IN PTR host.example.com.",
            ])
        let none = try #require(Answer.nxDomain(target, type: .ptr, negativeTTL: 30).aliased(from: name))
        #expect(none.head.responseCode == .nxDomain)
        #expect(none.head.answerCount == 1 && none.head.authorityCount == 1)
    }
}
