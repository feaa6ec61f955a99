import Base
import DNSWire
import DemoService
import HTTP
import HTTPDNS
import TestSupport
import Testing

@Suite struct ServiceEngineTests {
    private let engine: ServiceEngine
    /// The time the engine is told: that of the protocol's example with an expiry.
    private static let now: UInt64 = 1_744_702_000
    init() throws { engine = try ServiceEngine(account, unixSeconds: { Self.now }) }

    private let flags = "&ttl=1&query=1&clientip=1"

    /// Request and answer of the protocol's worked example, byte for byte.
    @Test func des() {
        #expect(
            Talk(engine).get("/d?dn=b9a896128400c10c5600a351f56276ad&id=12345&alg=des\(flags)")
                == "b9a896128400c10c262edfa949dd9e1590fee9f660550227c15404ead7c18a00ce073b42c33c8ddd66adc3a107c42cc9d7baf42beed711f5"
        )
    }

    /// The worked example's request; the answer has an initialization vector of its own.
    @Test func aes() throws {
        let body = try #require(
            Talk(engine).get(
                "/d?dn=000102030405060708090a0b0c0d0e0fbeb0f5b32e275ea7e0a124a03fe8885c&id=12345&alg=aes\(flags)"))
        let client = try TencentAccount(.aes(id: 12345, key: Secret(account.aesKey)))
        let results = try client.parse(
            HTTPResponse(status: 200, body: Array(body.utf8)), names: names("www.example.com"), family: .ipv4)
        #expect(results.first?.ipv4 == .addresses(addresses("192.0.2.1", "192.0.2.2"), ttl: 120))
    }

    @Test(arguments: [
        ("dn=www.example.com\("&ttl=1&query=1&clientip=1")", "www.example.com.:192.0.2.1;192.0.2.2,120|203.0.113.7"),
        ("dn=www.example.com", "192.0.2.1;192.0.2.2"),
        ("dn=www.example.com&ttl=1", "192.0.2.1;192.0.2.2,120"),
        ("dn=WWW.Example.Com.&clientip=1", "192.0.2.1;192.0.2.2|203.0.113.7"),
        ("dn=www.example.com&type=aaaa&query=1&ttl=1", "www.example.com.:2001:db8::1;2001:db8::2,120"),
        ("dn=www.example.com&type=ADDRS&ttl=1", "192.0.2.1;192.0.2.2,120-2001:db8::1;2001:db8::2,120"),
        ("dn=ipv4.example.com&type=addrs&ttl=1&query=1", "ipv4.example.com.:192.0.2.4,120-0"),
        ("dn=ipv6.example.com&type=addrs&ttl=1&query=1", "ipv6.example.com.:0-2001:db8::6,120"),
        ("dn=ipv6.example.com", ""), ("dn=nothing.example", ""), ("dn=nothing.example&type=addrs&clientip=1", ""),
        ("dn=nothing.example&query=1&clientip=1", "nothing.example.:0|203.0.113.7"),
        ("dn=nothing.example&query=1&type=addrs", "nothing.example.:0-0"),
        ("dn=example.com,nothing.example", "example.com.:192.0.2.3\nnothing.example.:0"),
        ("dn=example.com;1744702568", "192.0.2.3"),
        ("dn=example.com&clientip=1&ip=198.51.100.9", "192.0.2.3|198.51.100.9"),
        ("dn=example.com&clientip=1&ip=2001:db8::9", "192.0.2.3|2001:db8::9"),
        ("dn=example.com&clientip=1&ip=", "192.0.2.3|203.0.113.7"),
    ])
    func https(query: String, expected: String) {
        let talk = Talk(engine, isSecure: true)
        #expect(talk.get("/d?\(query)&token=67890") == expected)
        #expect(talk.statuses == ["200"])
    }

    @Test func itsOwnConfiguration() throws {
        #expect(Talk(engine, isSecure: true).get("/conf?token=67890") == "log:0|domain:0|ip:127.0.0.1|ttl:60")
        // The same, as the tests of HTTPDNS compute it.
        #expect(
            Talk(engine).get("/conf?id=12345&alg=des")
                == "122a9aaa6683d56618f5ec90cb251cc26f905b399a625a2767f7c9b53335a33ac0ec389138e77ca3")
        let other = try ServiceEngine(account, addresses: addresses("192.0.2.1", "2001:db8::1"))
        let client = try TencentAccount(.aes(id: 12345, key: Secret(account.aesKey)))
        let talk = Talk(other)
        talk.say(HTTPRequestWriter(host: "h", keepsConnection: true).get(try client.listTarget(at: 0)))
        var reader = HTTPResponseReader()
        let bytes = Array(talk.responses[0].utf8)
        let response = try #require(try reader.receive(bytes.span))
        #expect(
            try client.parseConfiguration(response)
                == ServiceConfiguration(addresses: addresses("192.0.2.1", "2001:db8::1"), ttlMinutes: 60))
    }

    @Test func anExpiredRequestOfTheClientIsRefused() throws {
        let client = try TencentAccount(.aes(id: 12345, key: Secret(account.aesKey)), authExpirySeconds: 600)
        for (sent, expected) in [(Self.now, "200"), (Self.now - 600, "200"), (Self.now - 601, "401")] {
            let talk = Talk(engine)
            talk.say(try client.request(names("www.example.com"), family: .both, host: "h", at: sent))
            #expect(talk.statuses == [expected])
        }
    }

    @Test func routeAddressInBothForms() throws {
        for encrypted in [false, true] {
            let client = try TencentAccount(
                .des(id: 12345, key: Secret(account.desKey)), routeIp: .v4(203, 0, 113, 7), routeIpEncrypted: encrypted)
            let talk = Talk(engine, client: .v4(127, 0, 0, 1))
            talk.say(try client.request(names("www.example.com"), family: .ipv4, host: "h"))
            // The text of the worked example, whose client address is 203.0.113.7.
            #expect(talk.responses.first?.hasSuffix("d7baf42beed711f5") == true)
        }
    }

    @Test(arguments: [
        (false, "/d?dn=b9a896128400c10c5600a351f56276ad&id=12345", "200"),
        (false, "/d?dn=b9a896128400c10c5600a351f56276ad&id=12346&alg=des", "401"),
        (false, "/d?dn=b9a896128400c10c5600a351f56276ad&alg=des", "401"),
        (false, "/d?dn=www.example.com&id=12345&alg=des", "401"),
        (false, "/d?dn=ffa896128400c10c5600a351f56276ae&id=12345&alg=des", "401"),
        (false, "/d?dn=b9a896128400c10c5600a351f56276ad&id=12345&alg=rot13", "400"),
        (false, "/d?dn=www.example.com&token=67890", "401"),
        (true, "/d?dn=www.example.com&token=67890", "200"), (true, "/d?dn=www.example.com&token=67891", "401"),
        (true, "/d?dn=www.example.com", "401"), (true, "/d?dn=www.example.com&token=", "401"),
        (true, "/d?token=67890", "400"), (true, "/d?dn=&token=67890", "400"),
        (true, "/d?dn=a%2Cb&token=67890", "400"), (true, "/d?dn=a,,b&token=67890", "400"),
        (true, "/d?dn=a,b,c,d,e,f,g,h&token=67890", "200"), (true, "/d?dn=a,b,c,d,e,f,g,h,i&token=67890", "400"),
        (true, "/d?dn=a&token=67890&type=mx", "400"), (true, "/d", "401"), (true, "/d?", "401"),
        (true, "/conf?token=67890", "200"), (true, "/conf", "401"), (true, "/conf?token=1", "401"),
        (false, "/conf?id=12345&alg=aes", "200"), (false, "/conf?id=1&alg=aes", "401"),
        (false, "/conf?token=67890", "401"), (false, "/conf?id=12345&alg=x", "400"), (true, "/config", "404"),
        (true, "/d?dn=a;1744702000&token=67890", "200"), (true, "/d?dn=a;1744701999&token=67890", "401"),
        (true, "/d?dn=a;&token=67890", "400"), (true, "/d?dn=a;soon&token=67890", "400"),
        (true, "/d?dn=a,b;1744702600&token=67890", "200"), (true, "/d?dn=a;99999999999999999999&token=67890", "200"),
        // `a.example,b.example;1744702568`
        (false, "/d?dn=54d4bbee79df5bc2da5de7f474f6612566e0150d3343ee6894b1258762053854&id=12345&alg=des", "200"),
        (true, "/", "404"), (true, "/dd?dn=a&token=67890", "404"),
    ])
    func statuses(isSecure: Bool, target: String, expected: String) {
        let talk = Talk(engine, isSecure: isSecure)
        _ = talk.get(target)
        #expect(talk.statuses == [expected])
        #expect(talk.hasEnded == (expected == "400"))
    }

    @Test(arguments: [
        ("POST /d?dn=a&token=67890 HTTP/1.1\r\nHost: h\r\n\r\n", "501"),
        ("GET /d?dn=a&token=67890 HTTP/1.1\r\n\r\n", "400"),
        ("GET /d?dn=a&token=67890 HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", "400"),
        ("GET /d?dn=a&token=67890 HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n", "400"),
        ("GET /d?dn=a&token=67890 HTTP/2\r\nHost: h\r\n\r\n", "400"), ("GET\r\n\r\n", "400"), ("GET /\r\n\r\n", "400"),
        ("\u{16}\u{3}\u{1}\r\n\r\n", "400"), (" GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET /" + String(repeating: "x", count: 20_000), "400"),
        ("GET /d?dn=a&token=67890 HTTP/1.0\r\n\r\n", "200"),
        ("GET /d?dn=a&token=67890 HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\n", "200"),
    ])
    func connectionsThatEnd(request: String, expected: String) {
        let talk = Talk(engine, isSecure: true)
        talk.say(request)
        #expect(talk.statuses == [expected])
        #expect(talk.hasEnded)
        #expect(talk.responses[0].contains("\r\nConnection: close\r\n"))
        talk.say("GET /d?dn=a&token=67890 HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(talk.statuses.count == 1)
    }

    @Test func pipelinedRequestsInAnyPieces() {
        let one = "GET /d?dn=example.com&token=67890 HTTP/1.1\r\nHost: h\r\n\r\n"
        let other = "\r\nGET /d?dn=ipv4.example.com&token=67890 HTTP/1.1\nHost: h\n\n"
        let whole = Talk(engine, isSecure: true)
        whole.say(one + other + one)
        #expect(whole.responses.map { $0.suffix(9) } == ["192.0.2.3", "192.0.2.4", "192.0.2.3"])
        #expect(!whole.hasEnded)
        let pieces = Talk(engine, isSecure: true)
        for byte in Array((one + other + one).utf8) { pieces.say([byte]) }
        #expect(pieces.responses == whole.responses)
        #expect(pieces.responses.allSatisfy { $0.contains("\r\nConnection: keep-alive\r\n") })
    }

    /// As many as may come at once.
    @Test func aLongPipeline() {
        let one = "GET /x HTTP/1.1\r\nHost:\r\n\r\n"
        let count = 64 * 1024 / one.utf8.count
        let talk = Talk(engine)
        talk.say(String(repeating: one, count: count))
        #expect(talk.statuses == [String](repeating: "404", count: count))
    }

    @Test func hostileRequestsNeverTrap() {
        var chance = Chance.announced("ServiceEngineTests.hostileRequestsNeverTrap")
        let seeds = [
            "GET /d?dn=example.com,a.example&token=67890&type=addrs&ttl=1&query=1&ip=1.2.3.4 HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /d?dn=b9a896128400c10c5600a351f56276ad&id=12345&alg=des&ip=b70421366ccc0106359ca00a0d05acf5 HTTP/1.1\r\n"
                + "Host: h\r\nConnection: close\r\n\r\n",
        ].map { Array($0.utf8) }
        let syntax = Array("\r\n &=?;,.% /".utf8)
        for round in 0..<20_000 {
            let bytes = mutate(seeds[round % 2], with: syntax, &chance)
            let talk = Talk(engine, isSecure: round % 2 == 0)
            let split = chance.below(bytes.count)
            talk.say(Array(bytes[..<split]))
            talk.say(Array(bytes[split...]))
            #expect(talk.statuses.allSatisfy { ["200", "400", "401", "404", "501"].contains($0) })
        }
    }

    @Test func randomAccounts() {
        let account = DemoAccount.random()
        #expect(account.aesKey.count == 16 && account.desKey.count == 8)
        #expect((account.aesKey + account.desKey).allSatisfy { 0x30...0x7A ~= $0 })
        #expect(account.token.allSatisfy { 0x30...0x39 ~= $0 } && account.token.count == 9)
        #expect(account != DemoAccount.random())
        var dumped = "\(account)"
        dump(account, to: &dumped)
        for secret in [account.aesKey, account.desKey, account.token] {
            #expect(!dumped.contains(String(decoding: secret, as: UTF8.self)) && !dumped.contains("- \(secret[0])"))
        }
    }
}
