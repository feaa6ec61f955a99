import Addresses
import DNSWire
import HTTPDNS
import Testing

@Suite struct AnswerTests {
    private static func parse(
        _ body: String, _ names: [Name], _ family: ServiceFamily
    ) throws -> [NameResult] {
        try ServiceAccount(.https(token: Array("1".utf8))).parse(HTTPResponse(ok: body), names: names, family: family)
    }

    private static let www = names("www.example.com")
    private static let batch = names("a.example", "b.example")

    private static func v4(_ name: Name, _ ipv4: FamilyResult) -> NameResult {
        NameResult(name: name, ipv4: ipv4, ipv6: .notAsked)
    }

    /// The worked examples of the protocol, by number.
    @Test(arguments: [
        (1, "192.0.2.1;192.0.2.2", 60), (2, "192.0.2.1;192.0.2.2,120", 120),
        (3, "192.0.2.1;192.0.2.2,120|203.0.113.7", 120),
        (5, "www.example.com.:192.0.2.1;192.0.2.2,120|203.0.113.7", 120),
        (17, "192.0.2.1;192.0.2.2;,120|203.0.113.7", 120),
    ])
    func ipv4(example: Int, body: String, ttl: UInt32) throws {
        #expect(
            try Self.parse(body, Self.www, .ipv4)
                == [Self.v4(Self.www[0], .addresses(addresses("192.0.2.1", "192.0.2.2"), ttl: ttl))])
    }

    @Test func example4() throws {
        #expect(
            try Self.parse("192.0.2.1|203.0.113.7", Self.www, .ipv4)
                == [Self.v4(Self.www[0], .addresses(addresses("192.0.2.1"), ttl: 60))])
    }

    @Test func example6() throws {
        #expect(
            try Self.parse("www.example.com.:2001:db8::1;2001:db8::2,60|203.0.113.7", Self.www, .ipv6) == [
                NameResult(
                    name: Self.www[0], ipv4: .notAsked,
                    ipv6: .addresses(addresses("2001:db8::1", "2001:db8::2"), ttl: 60))
            ])
    }

    @Test func example7() throws {
        #expect(
            try Self.parse("192.0.2.1,120-2001:db8::1;2001:db8::2,60|203.0.113.7", Self.www, .both) == [
                NameResult(
                    name: Self.www[0], ipv4: .addresses(addresses("192.0.2.1"), ttl: 120),
                    ipv6: .addresses(addresses("2001:db8::1", "2001:db8::2"), ttl: 60))
            ])
    }

    @Test func example8() throws {
        #expect(
            try Self.parse("www.example.com.:192.0.2.1,120-2001:db8::1,60|203.0.113.7", Self.www, .both) == [
                NameResult(
                    name: Self.www[0], ipv4: .addresses(addresses("192.0.2.1"), ttl: 120),
                    ipv6: .addresses(addresses("2001:db8::1"), ttl: 60))
            ])
    }

    @Test(arguments: [
        (9, "a.example.:192.0.2.1,120\nb.example.:192.0.2.2,60|203.0.113.7"),
        (10, "a.example.:192.0.2.1,120|203.0.113.7\nb.example.:192.0.2.2,60|203.0.113.7"),
        (10, "a.example.:192.0.2.1,120|203.0.113.7\r\nb.example.:192.0.2.2,60|203.0.113.7\r\n\r\n"),
        (10, " \nb.example.:192.0.2.2,60\n\nA.Example.:192.0.2.1,120|203.0.113.7\n"),
    ])
    func batch(example: Int, body: String) throws {
        #expect(
            try Self.parse(body, Self.batch, .ipv4) == [
                Self.v4(Self.batch[0], .addresses(addresses("192.0.2.1"), ttl: 120)),
                Self.v4(Self.batch[1], .addresses(addresses("192.0.2.2"), ttl: 60)),
            ])
    }

    @Test func example11() throws {
        #expect(
            try Self.parse("a.example.:0\nb.example.:192.0.2.2,180|203.0.113.7", Self.batch, .ipv4) == [
                Self.v4(Self.batch[0], .noRecord),
                Self.v4(Self.batch[1], .addresses(addresses("192.0.2.2"), ttl: 180)),
            ])
    }

    @Test(arguments: ["", "\n", "\r\n\r\n", " "]) func example12(body: String) throws {
        #expect(try Self.parse(body, Self.www, .ipv4) == [Self.v4(Self.www[0], .noRecord)])
        #expect(
            try Self.parse(body, Self.batch, .both)
                == Self.batch.map { NameResult(name: $0, ipv4: .noRecord, ipv6: .noRecord) })
        #expect(
            try Self.parse(body, Self.www, .ipv6)
                == [NameResult(name: Self.www[0], ipv4: .notAsked, ipv6: .noRecord)])
    }

    @Test(arguments: [
        (13, "www.example.com|203.0.113.7"), (13, "www.example.com.:0|203.0.113.7"), (13, "WWW.example.com.|"),
        (12, "0"), (12, "0|203.0.113.7"), (12, "|203.0.113.7"), (16, "0,60"), (16, "www.example.com.:0,300"),
        (16, "www.example.com.:|203.0.113.7"), (16, "www.example.com.:,60"), (16, "www.example.com.:0;,60"),
    ])
    func noRecord(example: Int, body: String) throws {
        #expect(try Self.parse(body, Self.www, .ipv4) == [Self.v4(Self.www[0], .noRecord)])
    }

    @Test(arguments: [
        (14, "www.example.com.:0-0|203.0.113.7"), (13, "www.example.com|203.0.113.7"), (14, "0-0"), (14, "0,5-0,5"),
        (14, "www.example.com.:0"), (14, "www.example.com.:-"), (12, "0"),
    ])
    func noRecordOfBoth(example: Int, body: String) throws {
        #expect(
            try Self.parse(body, Self.www, .both)
                == [NameResult(name: Self.www[0], ipv4: .noRecord, ipv6: .noRecord)])
    }

    @Test(arguments: [
        (15, "www.example.com.:192.0.2.1;192.0.2.2-0|203.0.113.7", 60),
        (16, "www.example.com.:192.0.2.1;192.0.2.2,120-0,60|203.0.113.7", 120),
        (16, "www.example.com.:192.0.2.1;192.0.2.2,120-0|203.0.113.7", 120),
        (16, "www.example.com.:192.0.2.1;192.0.2.2,120-|203.0.113.7", 120),
    ])
    func oneFamilyMissing(example: Int, body: String, ttl: UInt32) throws {
        #expect(
            try Self.parse(body, Self.www, .both) == [
                NameResult(
                    name: Self.www[0], ipv4: .addresses(addresses("192.0.2.1", "192.0.2.2"), ttl: ttl),
                    ipv6: .noRecord)
            ])
    }

    @Test func example18() throws {
        #expect(
            try Self.parse("b.example.:192.0.2.2,60|203.0.113.7", Self.batch, .ipv4)
                == [Self.v4(Self.batch[1], .addresses(addresses("192.0.2.2"), ttl: 60))])
    }

    @Test func example19() throws {
        #expect(
            try Self.parse(
                "a.example.:192.0.2.1,60-0,60|203.0.113.7\nb.example.:0,60-2001:db8::1,60|203.0.113.7", Self.batch,
                .both) == [
                    NameResult(
                        name: Self.batch[0], ipv4: .addresses(addresses("192.0.2.1"), ttl: 60), ipv6: .noRecord),
                    NameResult(
                        name: Self.batch[1], ipv4: .noRecord, ipv6: .addresses(addresses("2001:db8::1"), ttl: 60)),
                ])
    }

    /// Names hold hyphens; only what stands behind the name may be cut there.
    @Test func hyphenatedName() throws {
        let name = names("my-site.a-b.example")
        let expected = NameResult(
            name: name[0], ipv4: .addresses(addresses("192.0.2.1"), ttl: 5),
            ipv6: .addresses(addresses("2001:db8::1"), ttl: 6))
        #expect(try Self.parse("my-site.a-b.example.:192.0.2.1,5-2001:db8::1,6", name, .both) == [expected])
        #expect(
            try Self.parse("my-site.a-b.example|203.0.113.7", name, .both)
                == [NameResult(name: name[0], ipv4: .noRecord, ipv6: .noRecord)])
    }

    @Test(arguments: [
        "other.example.com.:192.0.2.1,60|203.0.113.7", "www.example.co.:192.0.2.1,60",
        "www.example.comm.:192.0.2.1,60", "wwwxexample.com.:192.0.2.1,60", "www.example.com..:192.0.2.1,60",
        ".www.example.com.:192.0.2.1,60", ".:192.0.2.1,60",
    ])
    func anotherName(body: String) {
        #expect(throws: ServiceFailure.otherName) { try Self.parse(body, Self.www, .ipv4) }
        #expect(throws: ServiceFailure.otherName) { try Self.parse(body, Self.batch, .ipv4) }
    }

    @Test func linesOfOtherNamesAreIgnored() throws {
        #expect(
            try Self.parse(
                "evil.example.:198.51.100.1,60\nb.example.:192.0.2.2,60\nwww.example.com.:198.51.100.2,60",
                Self.batch, .ipv4) == [Self.v4(Self.batch[1], .addresses(addresses("192.0.2.2"), ttl: 60))])
    }

    /// Without a name nobody can say which of two it is for; and only what is a list to the letter is believed at all.
    @Test func namelessLines() throws {
        for body in ["192.0.2.1,60", "0", "192.0.2.1,60\n192.0.2.2,60"] {
            #expect(throws: ServiceFailure.unparsable) { try Self.parse(body, Self.batch, .ipv4) }
        }
        for body in [
            "192.0.2.1;x,60", "192.0.2.1;2001:db8::1,60", "192.0.2.1,soon", "2001:db8::1,60", "192.0.2.1-0", "hello",
            "<html><body>Please log in</body></html>", "{\"code\":1}", "192.0.2.256", "01.2.3.4", "-1",
        ] {
            #expect(throws: ServiceFailure.unparsable) { try Self.parse(body, Self.www, .ipv4) }
        }
    }

    @Test func badAddressesAmongGoodOnesAreLeftOut() throws {
        #expect(
            try Self.parse("www.example.com.:nonsense;192.0.2.1;2001:db8::1;;0;192.0.2.300,60", Self.www, .ipv4)
                == [Self.v4(Self.www[0], .addresses(addresses("192.0.2.1"), ttl: 60))])
        #expect(
            try Self.parse("www.example.com.:192.0.2.1;2001:db8::1,60-192.0.2.2;2001:db8::2,60", Self.www, .both) == [
                NameResult(
                    name: Self.www[0], ipv4: .addresses(addresses("192.0.2.1"), ttl: 60),
                    ipv6: .addresses(addresses("2001:db8::2"), ttl: 60))
            ])
    }

    /// Garbage must never be remembered as the absence of a name.
    @Test func nothingButBadAddressesIsAFailure() {
        for body in [
            "www.example.com.:nonsense,60", "www.example.com.:2001:db8::1,60", "www.example.com.:-1",
            "www.example.com.:1.2.3,60",
        ] {
            #expect(throws: ServiceFailure.unparsable) { try Self.parse(body, Self.www, .ipv4) }
        }
        #expect(throws: ServiceFailure.unparsable) {
            try Self.parse("www.example.com.:nonsense,60-2001:db8::1,60", Self.www, .both)
        }
    }

    @Test func theFirstReadableLineOfANameCounts() throws {
        #expect(
            try Self.parse(
                "www.example.com.:x\nwww.example.com.:192.0.2.1,7\nwww.example.com.:192.0.2.2,8", Self.www, .ipv4)
                == [Self.v4(Self.www[0], .addresses(addresses("192.0.2.1"), ttl: 7))])
    }

    @Test func oneListForBothFamilies() throws {
        #expect(
            try Self.parse("www.example.com.:192.0.2.1;2001:db8::1,9", Self.www, .both) == [
                NameResult(
                    name: Self.www[0], ipv4: .addresses(addresses("192.0.2.1"), ttl: 9),
                    ipv6: .addresses(addresses("2001:db8::1"), ttl: 9))
            ])
    }

    @Test(arguments: [
        ("0", 0), ("1", 1), ("2147483647", 2_147_483_647), ("2147483648", 2_147_483_647),
        ("99999999999999999999999999", 2_147_483_647), ("", 60), ("-1", 60), ("1.5", 60), (" 30 ", 30), ("x", 60),
    ])
    func timeToLive(written: String, expected: UInt32) throws {
        #expect(
            try Self.parse("www.example.com.:192.0.2.1,\(written)|1", Self.www, .ipv4)
                == [Self.v4(Self.www[0], .addresses(addresses("192.0.2.1"), ttl: expected))])
    }

    @Test func addressesAreCappedAndDistinct() throws {
        let all = (0..<100).map { "192.0.2.\($0)" }
        let body = "www.example.com.:192.0.2.0;" + all.joined(separator: ";") + ",60"
        #expect(
            try Self.parse(body, Self.www, .ipv4)
                == [Self.v4(Self.www[0], .addresses(all.prefix(32).map { IPAddress($0)! }, ttl: 60))])
    }

    /// An empty one would say "no record", half a one would lack addresses.
    @Test(arguments: ["", "www.example.com.:192.0.2.1,60"]) func aBodyThatMayHaveBeenCutIsNoAnswer(body: String) throws
    {
        let response = HTTPResponse(status: 200, body: Array(body.utf8), keepAlive: false, isWhole: false)
        let accounts = [
            try ServiceAccount(.https(token: Array("1".utf8))),
            try ServiceAccount(.aes(id: 1, key: Array("0123456789abcdef".utf8))),
        ]
        for account in accounts {
            #expect(throws: ServiceFailure.cutOff) { try account.parse(response, names: Self.www, family: .ipv4) }
            #expect(throws: ServiceFailure.cutOff) { try account.parseConfiguration(response) }
        }
    }

    @Test(arguments: [100, 204, 301, 401, 403, 404, 429, 500, 501, 503])
    func statusOtherThan200(status: Int) throws {
        let account = try ServiceAccount(.https(token: Array("1".utf8)))
        let response = HTTPResponse(status: status, body: Array("www.example.com.:192.0.2.1,60".utf8))
        #expect(throws: ServiceFailure.status(status)) {
            try account.parse(response, names: Self.www, family: .ipv4)
        }
        #expect(ServiceFailure.status(status).description.contains("\(status)"))
        #expect(!ServiceFailure.status(status).description.contains("\n"))
    }
}
