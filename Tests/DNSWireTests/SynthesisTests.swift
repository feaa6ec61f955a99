import Base
import DNSWire
import Testing

/// RFC 6147: answers that are made of others.
@Suite struct SynthesisTests {
    private static let prefix = NAT64Prefix(Network("2001:db8:64::/96")!)!

    private static func absence(_ ttl: UInt32) -> Answer { .noData(Wire.asked, type: .aaaa, negativeTTL: ttl) }

    @Test func addressesMoveUnderThePrefix() throws {
        let a = Wire.answer(
            .a,
            [Wire.record(Wire.pointer, .a, [192, 0, 2, 1]), Wire.record(Wire.pointer, .a, [192, 0, 2, 2], ttl: 30)])
        let made = try #require(a.synthesized(under: Self.prefix, after: Self.absence(40)))
        #expect(
            Wire.texts(made) == [
                "answer www.example.com. 40 IN AAAA 2001:db8:64::c000:201",
                "answer www.example.com. 30 IN AAAA 2001:db8:64::c000:202",
            ])
        #expect(made.keep == 40)
        #expect(!made.head.authenticData)
        #expect(made.addresses.count == 2)
    }

    @Test("RFC 6147 §5.1.7: without an SOA, 600 s")
    func lifetimeWithoutSOA() throws {
        var a = Answer.addresses(Wire.asked, type: .a, [.v4(192, 0, 2, 1)], ttl: 3600)
        let failure = Answer.failure(Wire.asked, type: .aaaa, .servFail, extendedError: nil)
        #expect(try #require(a.synthesized(under: Self.prefix, after: failure)).keep == 600)
        a.keep = 5
        #expect(try #require(a.synthesized(under: Self.prefix, after: failure)).keep == 5)
    }

    @Test("RFC 6147 §5.1.5: aliases stay, wherever their names are written")
    func aliases() throws {
        // `target` stands in the alias's data, and what comes behind points there.
        let alias = Wire.record(Wire.pointer, .cname, [6] + Array("target".utf8) + [0xC0, 0x10])
        let owner: [UInt8] = [0xC0, UInt8(12 + Wire.asked.wire.count + 4 + 12)]
        let a = Wire.answer(
            .a,
            [
                alias, Wire.record(owner, .a, [192, 0, 2, 1]), Wire.record(owner, .a, [127, 0, 0, 1]),
                Wire.record(owner, .a, [192, 0, 2, 2]),
            ], authority: [Wire.record(owner, .ns, Wire.pointer)])
        let made = try #require(a.synthesized(under: Self.prefix, after: Self.absence(600)))
        #expect(
            Wire.texts(made) == [
                "answer www.example.com. 60 IN CNAME target.example.com.",
                "answer target.example.com. 60 IN AAAA 2001:db8:64::c000:201",
                "answer target.example.com. 60 IN AAAA 2001:db8:64::c000:202",
            ])
    }

    @Test func whereNoAddressMayBeTranslatedThereIsNoAnswer() {
        let a = Answer.addresses(Wire.asked, type: .a, [.v4(127, 0, 0, 1), .v4(0, 0, 0, 0)], ttl: 60)
        #expect(a.synthesized(under: Self.prefix, after: Self.absence(60)) == nil)
        #expect(Self.absence(60).synthesized(under: Self.prefix, after: Self.absence(60)) == nil)
    }

    @Test(arguments: [1, 2300, 2310, 2321, 4000])
    func asManyAsAMessageHolds(_ count: Int) throws {
        let addresses = (0..<count).map { IPAddress(v4: 0x0808_0000 + UInt32($0)) }
        for longName in [
            Wire.asked, Name([String](repeating: String(repeating: "a", count: 60), count: 4).joined(separator: "."))!,
        ] {
            let a = Answer.addresses(longName, type: .a, addresses, ttl: 60)
            let made = try #require(a.synthesized(under: Self.prefix, after: Self.absence(60)))
            #expect(made.addresses.count >= min(count, 2300))
            #expect(made.addresses == addresses.prefix(made.addresses.count).map { Self.prefix.address(of: $0)! })
            #expect(made.body.count <= 65_535 - 512)
        }
    }

    @Test("RFC 6052 §3.1, RFC 7050 §3: the addresses of ipv4only.arpa are translated for that name alone")
    func addressesOfIPv4Only() throws {
        let (well, known) = (IPAddress.v4(192, 0, 0, 170), IPAddress.v4(192, 0, 0, 171))
        let elsewhere = Answer.addresses(Wire.asked, type: .a, [well, .v4(192, 0, 2, 1), known], ttl: 60)
        #expect(
            try #require(elsewhere.synthesized(under: Self.prefix, after: Self.absence(60))).addresses
                == [IPAddress("2001:db8:64::192.0.2.1")!])
        #expect(
            Answer.addresses(Wire.asked, type: .a, [well], ttl: 60).synthesized(
                under: .wellKnown, after: Self.absence(60))
                == nil)
        for prefix in [Self.prefix, .wellKnown] {
            #expect(NAT64Prefix.found(in: [well, known].map { prefix.addressOfIPv4Only($0)! }) == [prefix])
        }
    }

    @Test func whatLacksAddresses() {
        #expect(Self.absence(60).lacksTheType)
        #expect(Answer.failure(Wire.asked, type: .aaaa, .servFail, extendedError: nil).lacksTheType)
        #expect(!Answer.nxDomain(Wire.asked, type: .aaaa, negativeTTL: 60).lacksTheType)
        let aaaa = Answer.addresses(Wire.asked, type: .aaaa, [IPAddress("2001:db8::1")!], ttl: 60)
        #expect(!aaaa.lacksTheType)
        let alias = Wire.answer(.aaaa, [Wire.record(Wire.pointer, .cname, [1, 0x61, 0xC0, 0x10])])
        #expect(alias.lacksTheType)
        #expect(!alias.isSigned)
        #expect(
            Wire.answer(
                .aaaa, [], authority: [Wire.record(Wire.pointer, .rrsig, [0, 6] + [UInt8](repeating: 1, count: 20))]
            )
            .isSigned)
    }

    @Test("RFC 6147 §5.3.1: a reverse name under the prefix is an alias of the IPv4 address's")
    func pointers() throws {
        let target = Name("1.2.0.192.in-addr.arpa")!
        let ptr = Answer.pointers(target, [Name("host.example.com")!], ttl: 60)
        let name = Name.reverse(of: IPAddress("2001:db8:64::c000:201")!)
        #expect(
            ptr.aliased(from: name).map(Wire.texts) == [
                "answer \(name). 60 IN CNAME 1.2.0.192.in-addr.arpa.",
                "answer 1.2.0.192.in-addr.arpa. 60 IN PTR host.example.com.",
            ])
        let none = try #require(Answer.nxDomain(target, type: .ptr, negativeTTL: 30).aliased(from: name))
        #expect(none.head.responseCode == .nxDomain)
        #expect(none.head.answerCount == 1 && none.head.authorityCount == 1)
    }
}
