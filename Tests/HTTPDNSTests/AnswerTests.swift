import Base
import DNSWire
import HTTP
import HTTPDNS
import Testing

@Suite struct AnswerTests {
    private static func parse(
        _ body: String, _ names: [Name], _ family: Families
    ) throws -> [NameAddresses] {
        try TencentAccount(.https(token: Secret(Array("1".utf8)))).parse(
            HTTPResponse(ok: body), names: names, family: family)
    }

    private static let www = names("www.example.com")
    private static let batch = names("a.example", "b.example")

    private static func v4(_ name: Name, _ ipv4: FamilyAddresses) -> NameAddresses {
        NameAddresses(name: name, ipv4: ipv4, ipv6: .notAsked)
    }

    /// White space around the text means nothing, nor do the letters' case and the order of the lines.
    @Test(arguments: [
        " \r\nb.example.:192.0.2.2,60\nA.Example.:192.0.2.1,120|203.0.113.7\n \t\n",
        "a.example.:192.0.2.1,120|203.0.113.7\r\nB.EXAMPLE.:192.0.2.2,60|203.0.113.7\r\n\r\n",
    ])
    func whatMeansNothing(body: String) throws {
        #expect(
            try Self.parse(body, Self.batch, .ipv4) == [
                Self.v4(Self.batch[0], .addresses(addresses("192.0.2.1"), ttl: 120)),
                Self.v4(Self.batch[1], .addresses(addresses("192.0.2.2"), ttl: 60)),
            ])
    }

    @Test(arguments: ["", "\n", "\r\n\r\n", " "]) func nothingAtAll(body: String) throws {
        #expect(try Self.parse(body, Self.www, .ipv4) == [Self.v4(Self.www[0], .noRecord)])
        #expect(
            try Self.parse(body, Self.batch, .both)
                == Self.batch.map { NameAddresses(name: $0, ipv4: .noRecord, ipv6: .noRecord) })
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

    /// Not what a service is, though it answers HTTP with status 200.
    @Test(arguments: [
        "hello", "<html><body>Please log in</body></html>", "{\"code\":1}", "192.0.2.256", "01.2.3.4", "-1",
        "www.example.com.:nonsense,60", "www.example.com.:1.2.3,60",
    ])
    func somethingElse(body: String) {
        for names in [Self.www, Self.batch] {
            #expect(throws: ServiceFailure.self) { try Self.parse(body, names, .ipv4) }
        }
    }

    /// A zone's owner can write them into the zone, so they are no failure of the service; and not taken.
    @Test(arguments: [
        "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "203.0.113.1;0.0.0.0",
    ])
    func addressesNoMachineHas(list: String) throws {
        #expect(
            try Self.parse("www.example.com.:\(list),60", Self.www, .ipv4) == [Self.v4(Self.www[0], .noRecord)])
        #expect(
            try Self.parse("www.example.com.:\(list),60-2001:db8::1,9", Self.www, .both) == [
                NameAddresses(
                    name: Self.www[0], ipv4: .noRecord, ipv6: .addresses(addresses("2001:db8::1"), ttl: 9))
            ])
    }

    @Test(arguments: ["::", "ff02::1", "ff0e::1", "::ffff:203.0.113.1", "2001:db8::1;::ffff:10.0.0.1"])
    func ipv6AddressesNoMachineHas(list: String) throws {
        #expect(
            try Self.parse("www.example.com.:203.0.113.1,60-\(list),9", Self.www, .both) == [
                NameAddresses(name: Self.www[0], ipv4: .addresses(addresses("203.0.113.1"), ttl: 60), ipv6: .noRecord)
            ])
    }

    @Test(arguments: ["1.0.0.1", "10.0.0.1", "127.0.0.1", "223.255.255.255"]) func addressesSomeMachineHas(
        address: String
    ) throws {
        #expect(
            try Self.parse("www.example.com.:\(address),60", Self.www, .ipv4)
                == [Self.v4(Self.www[0], .addresses(addresses(address), ttl: 60))])
    }

    @Test func aNameTwiceWithTheSameContent() throws {
        #expect(
            try Self.parse("www.example.com.:192.0.2.1,7\nwww.example.com.:192.0.2.1,7", Self.www, .ipv4)
                == [Self.v4(Self.www[0], .addresses(addresses("192.0.2.1"), ttl: 7))])
    }

    @Test func oneListForBothFamilies() throws {
        #expect(
            try Self.parse("www.example.com.:192.0.2.1;2001:db8::1,9", Self.www, .both) == [
                NameAddresses(
                    name: Self.www[0], ipv4: .addresses(addresses("192.0.2.1"), ttl: 9),
                    ipv6: .addresses(addresses("2001:db8::1"), ttl: 9))
            ])
    }

    @Test(arguments: [
        ("0", 0), ("1", 1), ("2147483647", 2_147_483_647), ("2147483648", 2_147_483_647),
        ("99999999999999999999999999", 2_147_483_647),
    ])
    func timeToLive(written: String, expected: UInt32) throws {
        #expect(
            try Self.parse("www.example.com.:192.0.2.1,\(written)|203.0.113.7", Self.www, .ipv4)
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
            try TencentAccount(.https(token: Secret(Array("1".utf8)))),
            try TencentAccount(.aes(id: 1, key: Secret(Array("0123456789abcdef".utf8)))),
        ]
        for account in accounts {
            #expect(throws: ServiceFailure.cutOff) { try account.parse(response, names: Self.www, family: .ipv4) }
            #expect(throws: ServiceFailure.cutOff) { try account.parseConfiguration(response) }
        }
    }

    @Test(arguments: [100, 204, 301, 401, 403, 404, 429, 500, 501, 503])
    func statusOtherThan200(status: Int) throws {
        let account = try TencentAccount(.https(token: Secret(Array("1".utf8))))
        let response = HTTPResponse(status: status, body: Array("www.example.com.:192.0.2.1,60".utf8))
        #expect(throws: ServiceFailure.status(status)) {
            try account.parse(response, names: Self.www, family: .ipv4)
        }
        let words = ServiceFailure.status(status).words(AccountKeys("httpdns", names: "", .https(token: Secret([]))))
        #expect(words.contains("\(status)") && !words.contains("\n"))
    }
}
