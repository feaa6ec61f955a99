import Base
import Cryptography
import DNSWire
import HTTP
import Testing

@testable import HTTPDNS

/// What is read from each provider's answers.
@Suite struct ProviderAnswerTests {
    private static let secret = ProviderRequestTests.alibabaSecret
    private static let aesKey = (0..<16).map { UInt8($0) }

    private func parse(
        _ provider: Provider, _ body: String, _ asked: [String], _ family: Families = .both, status: Int = 200
    ) throws -> [NameAddresses] {
        try ProviderRequestTests.account(provider, secret: Self.secret).parse(
            HTTPResponse(status: status, body: Array(body.utf8)), names: asked.map { Name($0)! }, family: family)
    }

    private func result(
        _ name: String, _ ipv4: FamilyAddresses = .noRecord, _ ipv6: FamilyAddresses = .noRecord
    ) -> NameAddresses {
        NameAddresses(name: Name(name)!, ipv4: ipv4, ipv6: ipv6)
    }

    private static let v2 = """
        {"code":"success","mode":0,"data":{"cip":"203.0.113.7","answers":[{"dn":"a.example","v4":{"ips":["192.0.2.1",\
        "192.0.2.2"],"ttl":60,"extra":"{\\"k\\":1}"},"v6":{"ips":["2001:db8::1"],"ttl":30}},\
        {"dn":"b.example","v4":{"ips":[],"ttl":300,"no_ip_code":"NXDOMAIN"},"v6":null}]}}
        """

    private static func encrypted(_ data: String, mode: Int = 1) throws -> String {
        let payload = try PayloadCipher(.aes, key: aesKey).encrypt(Array(data.utf8).span)
        let text = Base64.standard.encode(payload).replacing("/", with: "\\/")
        return "{\"code\":\"success\",\"mode\":\(mode),\"data\":\"\(text)\"}"
    }

    @Test func alibaba() throws {
        #expect(
            try parse(.alibaba, Self.v2, ["a.example", "b.example"]) == [
                result(
                    "a.example", .addresses(addresses("192.0.2.1", "192.0.2.2"), ttl: 60),
                    .addresses(addresses("2001:db8::1"), ttl: 30)),
                result("b.example"),
            ])
        #expect(try parse(.alibaba, Self.v2, ["b.example", "a.example"], .ipv4)[0].ipv6 == .notAsked)
        // The mode comes first, or the data does.
        let turned = "{\"data\":{\"answers\":[{\"v4\":{\"ttl\":1,\"ips\":[\"192.0.2.1\"]},\"dn\":\"A.example\"}]},"
        #expect(
            try parse(.alibaba, turned + "\"mode\":0,\"code\":\"success\"}", ["a.example"])
                == [result("a.example", .addresses(addresses("192.0.2.1"), ttl: 1))])
    }

    @Test func alibabaEncrypted() throws {
        let account = try ProviderRequestTests.account(.alibaba, secret: Self.secret, aesKey: Self.aesKey)
        func parse(_ body: String) throws -> [NameAddresses] {
            try account.parse(HTTPResponse(ok: body), names: names("a.example"), family: .both)
        }
        let data =
            "{\"cip\":\"203.0.113.7\",\"answers\":[{\"dn\":\"a.example\",\"v4\":{\"ips\":[\"192.0.2.1\"],\"ttl\":7000}}]}"
        // Nobody has proven the time to live.
        #expect(
            try parse(Self.encrypted(data)) == [result("a.example", .addresses(addresses("192.0.2.1"), ttl: 600))])
        // What is in clear, or in another mode, somebody on the path may have written.
        #expect(throws: ServiceFailure.unparsable) { try parse(Self.v2) }
        #expect(throws: ServiceFailure.unparsable) { try parse(Self.encrypted(data, mode: 2)) }
        // Whatever is wrong with what is encrypted, the failure is the same.
        for wrong in [
            data.replacing("a.example", with: "A.example"), data.replacing("203", with: "\u{e9}"), data + "x", "{}", "",
        ] {
            #expect(throws: ServiceFailure.undecryptable) { try parse(Self.encrypted(wrong)) }
        }
        #expect(throws: ServiceFailure.undecryptable) {
            try parse("{\"code\":\"success\",\"mode\":1,\"data\":\"AAAA\"}")
        }
    }

    @Test func alibabaVersion1() throws {
        #expect(
            try parse(
                .alibabaV1,
                "{\"host\":\"a.example\",\"ips\":[\"192.0.2.1\"],\"ipsv6\":[],\"ttl\":60,\"origin_ttl\":60,\"client_ip\":\"x\"}",
                ["a.example"]) == [result("a.example", .addresses(addresses("192.0.2.1"), ttl: 60))])
        #expect(
            try parse(.alibabaV1, "{\"host\":\"a.example\",\"ips\":[],\"ttl\":300}", ["a.example"])
                == [result("a.example")])
        // IPv6 addresses in an object of their own, or beside the others.
        let batch = """
            {"dns":[{"host":"a.example","ips":["192.0.2.1"],"type":1,"ttl":60},{"host":"a.example","type":28,\
            "ips":["2001:db8::1"],"ttl":30},{"host":"b.example","ips":["192.0.2.2"],"ipsv6":["2001:db8::2"],"ttl":9,"type":1}]}
            """
        let expected = [
            result(
                "a.example", .addresses(addresses("192.0.2.1"), ttl: 60), .addresses(addresses("2001:db8::1"), ttl: 30)),
            result(
                "b.example", .addresses(addresses("192.0.2.2"), ttl: 9), .addresses(addresses("2001:db8::2"), ttl: 9)),
        ]
        #expect(try parse(.alibabaV1, batch, ["a.example", "b.example"]) == expected)
        // The second object gives other addresses of the same family.
        #expect(throws: ServiceFailure.unparsable) {
            try parse(
                .alibabaV1, batch.replacing("\"2001:db8::1\"", with: "\"192.0.2.9\""), ["a.example", "b.example"])
        }
    }

    @Test func baidu() throws {
        let body = """
            {"clientip":"203.0.113.7","data":{"a.example":{"ipv4":{"ip":["192.0.2.1"],"msg":"ok","ttl":300},\
            "ipv6":{"ip":[],"msg":"no such record","ttl":60}},"b.example":{"ipv4":{"ip":null,"msg":"x"}}},\
            "msg":"ok","serverip":{"ipv4":["192.0.2.5"]},"timestamp":1513602734}
            """
        #expect(
            try parse(.baidu, body, ["a.example", "b.example", "c.example"]) == [
                result("a.example", .addresses(addresses("192.0.2.1"), ttl: 300)), result("b.example"),
            ])
        let late = "{\"msg\":\"SignatureExpired\",\"timestamp\":1513602734}"
        for status in [200, 400] {
            let failure = #expect(throws: ServiceFailure.self) {
                try parse(.baidu, late, ["a.example"], status: status)
            }
            #expect(failure?.remedy == .clock)
            guard case .refused(let refusal) = failure else { continue }
            #expect(refusal.serviceTime == 1_513_602_734 && failure?.words(keys(.baidu)).contains("clock") == true)
        }
    }

    @Test func volcengine() throws {
        let body = "{\"cip\":\"203.0.113.7\",\"host\":\"a.example\",\"ips\":[\"192.0.2.1\",\"2001:db8::1\"],\"ttl\":60}"
        #expect(
            try parse(.volcengine, body, ["a.example"]) == [
                result(
                    "a.example", .addresses(addresses("192.0.2.1"), ttl: 60),
                    .addresses(addresses("2001:db8::1"), ttl: 60))
            ])
        #expect(
            try parse(.volcengine, "{\"host\":\"a.example\",\"ips\":null}", ["a.example"]) == [result("a.example")])
    }

    private func keys(_ provider: Provider) -> AccountKeys {
        AccountKeys(
            "upstreams.shop", names: "upstreams.shop.domains", .signed(provider, id: 1, secret: Secret([]), aesKey: nil)
        )
    }

    /// Every error code that the providers document, and what is done about it.
    @Test(arguments: [
        ("ServiceLevelDeny", 403, ServiceFailure.Remedy.askAnother, "server"),
        ("UnsignedInterfaceDisabled", 403, .account, "dnsKey"), ("InvalidAccount", 403, .account, "dnsId"),
        ("AccountNotExists", 403, .account, "dnsId"), ("SignatureExpired", 403, .clock, "clock"),
        ("InvalidSignature", 403, .account, "dnsKey"), ("InvalidDuration", 403, .account, "authExpirySeconds"),
        ("InvalidHost", 400, .names, "domains"), ("TooManyHosts", 400, .fewerNames, "batch"),
        ("MissingArgument", 400, .account, "provider"), ("MethodNotAllowed", 405, .account, "provider"),
        ("InternalError", 500, .askAnother, "server"), ("Unheard", 403, .account, "Unheard"),
        ("Unheard", 429, .leaveAlone, "Unheard"), ("\u{e9}", 500, .none, "500"),
    ])
    func refusals(code: String, status: Int, remedy: ServiceFailure.Remedy, word: String) throws {
        for provider in [Provider.alibaba, .alibabaV1, .volcengine, .baidu] {
            let member = provider == .baidu ? "msg" : "code"
            let failure = #expect(throws: ServiceFailure.self) {
                try parse(provider, "{\"\(member)\":\"\(code)\"}", ["a.example"], status: status)
            }
            #expect(failure?.remedy == remedy && failure?.words(keys(provider)).contains(word) == true, "\(provider)")
        }
        #expect(throws: ServiceFailure.status(status)) {
            try parse(.volcengine, "", ["a.example"], status: status)
        }
    }

    /// No provider's answer: each is refused, and none is taken for "no record".
    @Test(arguments: [
        "", "null", "{}", "[]", "{\"code\":\"success\",\"mode\":0}", "{\"msg\":\"ok\"}", "{\"msg\":\"ok\",\"data\":{}}",
        "{\"dns\":[]}", "{\"host\":\"other.example\",\"ips\":[]}", "{\"host\":\"a.example\",\"ips\":[\"1.2.3\"]}",
        "{\"host\":\"a.example\",\"ips\":[\"192.0.2.1\"],\"ttl\":-1}",
        "{\"host\":\"a.example\",\"ips\":[\"192.0.2.1\"],\"ttl\":1.5}",
        "{\"host\":\"a.example\",\"ips\":[\"192.0.2.1\"],\"ips\":[\"192.0.2.1\"]}",
        "{\"host\":\"a.example\",\"ips\":[\"192.0.2.1\"]} x", "{\"host\":\"a.example\",\"ips\":[\"192.0.2.1\"]",
        "{\"h\\u006fst\":\"a.example\",\"ips\":[]}",
        "{\"code\":\"success\",\"mode\":0,\"data\":{\"answers\":[{\"dn\":\"a.example\",\"v4\":{\"ips\":[\"2001:db8::1\"]}}]}}",
        "{\"code\":\"success\",\"mode\":0,\"data\":{\"answers\":[{\"v4\":{\"ips\":[\"192.0.2.1\"]}}]}}",
        "{\"msg\":\"ok\",\"data\":{\"a.example\":{\"ipv4\":{\"ip\":[\"2001:db8::1\"]}}}}",
        "{\"msg\":\"ok\",\"data\":{\"a.example\":{},\"A.example\":{}}}",
    ])
    func noAnswers(body: String) {
        for provider in [Provider.alibaba, .alibabaV1, .volcengine, .baidu] {
            #expect(throws: ServiceFailure.self, "\(provider)") { try parse(provider, body, ["a.example"]) }
        }
    }

    /// In clear and encrypted. What people could not read is left out, and changes nothing else.
    @Test(arguments: [false, true]) func alibabaSaysWhyThereIsNoAddress(isEncrypted: Bool) throws {
        let account = try ProviderRequestTests.account(
            .alibaba, secret: Self.secret, aesKey: isEncrypted ? Self.aesKey : nil)
        func body(_ code: String) throws -> String {
            let data = """
                {"cip":"1.2.3.4","answers":[\
                {"dn":"a.example","v4":{"ips":["192.0.2.1"],"ttl":60,"no_ip_code":"x"},"v6":{"ips":[],"no_ip_code":\(code)}},\
                {"dn":"b.example","v4":{"no_ip_code":"RRNotExist"},"v6":{"ttl":300}}]}
                """
            return isEncrypted
                ? try Self.encrypted(data) : "{\"code\":\"success\",\"mode\":0,\"data\":\(data)}"
        }
        for (code, isWord) in [
            ("\"Domain_Not-Found.1\"", true), ("\"\"", false), ("7", false), ("null", false), ("\"a b\"", false),
            ("\"a\\/b\"", false), ("\"<x>\"", false), ("\"\(String(repeating: "a", count: 65))\"", false),
        ] {
            var reasons: [AbsenceReason] = []
            let response = HTTPResponse(ok: try body(code))
            let results = try account.parse(
                response, names: names("a.example", "b.example"), family: .both, reasons: &reasons)
            #expect(
                results == [
                    result("a.example", .addresses(addresses("192.0.2.1"), ttl: 60)), result("b.example"),
                ])
            #expect(reasons.code(of: Name("a.example")!, .ipv6) == (isWord ? "Domain_Not-Found.1" : nil), "\(code)")
            #expect(reasons.code(of: Name("b.example")!, .ipv4) == "RRNotExist")
            // What is said of one family holds for the other, of which nothing is.
            #expect(reasons.code(of: Name("b.example")!, .ipv6) == "RRNotExist" && reasons.count == (isWord ? 2 : 1))
            #expect(reasons.code(of: Name("c.example")!) == nil)
        }
    }

    @Test func addressesOfNoMachineAreNoRecord() throws {
        #expect(
            try parse(.volcengine, "{\"host\":\"a.example\",\"ips\":[\"192.0.2.1\",\"0.0.0.0\"]}", ["a.example"])
                == [result("a.example")])
        // What is wrong in one family takes nothing from the other, in whatever list it comes.
        for body in ["\"ips\":[\"192.0.2.1\",\"::\"]", "\"ips\":[\"192.0.2.1\"],\"ipsv6\":[\"::ffff:192.0.2.1\"]"] {
            #expect(
                try parse(.alibabaV1, "{\"host\":\"a.example\",\(body),\"ttl\":60}", ["a.example"])
                    == [result("a.example", .addresses(addresses("192.0.2.1"), ttl: 60))])
        }
        let mixed = "{\"host\":\"a.example\",\"ips\":[\"2001:db8::1\",\"0.0.0.0\"],\"ttl\":60}"
        #expect(
            try parse(.volcengine, mixed, ["a.example"])
                == [result("a.example", .noRecord, .addresses(addresses("2001:db8::1"), ttl: 60))])
    }

    @Test func lists() throws {
        func list(_ provider: Provider, _ body: String) throws -> ServiceConfiguration {
            try ProviderRequestTests.account(provider, secret: Self.secret).parseConfiguration(HTTPResponse(ok: body))
        }
        #expect(
            try list(.alibaba, "{\"service_ip\":[\"192.0.2.1\",\"192.0.2.1\"],\"service_ipv6\":[\"2001:db8::1\"]}")
                == ServiceConfiguration(addresses: addresses("192.0.2.1", "2001:db8::1"), ttlMinutes: 480))
        #expect(
            try list(
                .volcengine,
                "{\"svc_meta\":{\"backup_domains\":[\"192.0.2.2\"],\"main_domains\":[\"x.example\",\"192.0.2.1\"]},\"ts\":1,"
                    + "\"update_interval_min\":30}")
                == ServiceConfiguration(addresses: addresses("192.0.2.1", "192.0.2.2"), ttlMinutes: 30))
        for wrong in [
            "{}", "{\"service_ip\":[\"x\"]}", "{\"service_ip\":[\"0.0.0.0\"]}", "{\"code\":\"InvalidAccount\"}",
        ] {
            #expect(throws: ServiceFailure.self) { try list(.alibabaV1, wrong) }
        }
        // Of the name that is asked for nothing is read.
        #expect(
            try list(
                .baidu,
                "{\"msg\":\"ok\",\"data\":{\"x\":{}},\"serverip\":{\"ipv6\":[\"2001:db8::1\"],\"ipv4\":[\"192.0.2.1\"]}}"
            )
                == ServiceConfiguration(addresses: addresses("192.0.2.1", "2001:db8::1"), ttlMinutes: 60))
        for (wrong, failure) in [
            ("{}", ServiceFailure.unparsable), ("{\"msg\":\"ok\",\"serverip\":{}}", .unparsable),
            ("{\"msg\":\"ok\",\"serverip\":{\"ipv4\":[\"0.0.0.0\"]}}", .unparsable),
            (
                "{\"msg\":\"InvalidAccount\"}",
                .refused(ServiceRefusal(Array("InvalidAccount".utf8), status: 200, serviceTime: nil))
            ),
        ] {
            #expect(throws: failure) { try list(.baidu, wrong) }
        }
    }
}

@Suite struct JSONTextTests {
    private func isValid(_ text: [UInt8]) -> Bool { (try? JSONText(text)) != nil }

    @Test(arguments: [
        "{}", "[]", " [ 1 , -2.5e+3 , 0 , true , false , null , \"\\\"\\u00e9\\n\" ] ", "{\"a\":{\"a\":{}},\"b\":[[]]}",
        "\"é\"", "0.0", "1E9", String(repeating: "[", count: 8) + String(repeating: "]", count: 8),
    ])
    func valid(text: String) { #expect(isValid(Array(text.utf8))) }

    @Test(arguments: [
        "", " ", "{", "[1,]", "{\"a\":1,}", "{a:1}", "{\"a\" 1}", "[1 2]", "01", "-", "1.", ".5", "1e", "+1", "tru",
        "True",
        "nul", "\"", "\"\\x\"", "\"\\u12g4\"", "\"\n\"", "{\"a\":1,\"a\":2}", "{} {}", "[]]", "'a'", "NaN",
        String(repeating: "[", count: 9) + String(repeating: "]", count: 9),
        "{" + (0...64).map { "\"\($0)\":0" }.joined(separator: ",") + "}",
        "[" + (1...2048).map(String.init).joined(separator: ",") + "]", "{\"a\\/\":1}", "{\"a\":1,}", "[,1]", "\u{0}",
    ])
    func invalid(text: String) { #expect(!isValid(Array(text.utf8))) }

    @Test func octetsThatAreNoUTF8() {
        for octets: [UInt8] in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xE9]] {
            #expect(!isValid([0x22] + octets + [0x22]))
        }
        #expect((try? JSONText(Array("\"é\"".utf8), isInAnyScript: false)) == nil)
    }

    @Test func values() throws {
        let text = """
            { "a" : [ {"n" : 99999999999999999999999}, null, "x" ], "b":null ,"c":"a\\/b\\/", "d":-1, "e":"\\n","f":0.5,\
            "g":"192.0.2.1","aa":{"a":1}}
            """
        let json = try JSONText(Array(text.utf8))
        let a = try json.member("a")
        let elements = Array(try json.elements(of: a))
        #expect(elements.count == 3 && json.isString(elements[2]) && !json.isString(elements[1]))
        #expect(try json.integer(json.member("n", of: elements[0]), maximum: 600) == 600)
        for nothing in [elements[1], try json.member("b"), try json.member("nothing")] {
            #expect(try json.isMissing(nothing) && json.isMissing(json.member("x", of: nothing)))
            #expect(try Array(json.elements(of: nothing)).isEmpty && Array(json.members(of: nothing)).isEmpty)
        }
        #expect(try json.unescaped(json.member("c")) == Array("a/b/".utf8))
        #expect(try json.address(json.member("g")) == .v4(192, 0, 2, 1))
        #expect(try json.integer(json.member("a", of: json.member("aa"))) == 1)
        let names = try json.members(of: JSONText.root).map { Array(json.octets[json.name($0)]) }
        #expect(names.map { String(decoding: $0, as: UTF8.self) } == ["a", "b", "c", "d", "e", "f", "g", "aa"])
        for wrong in ["d", "f", "c", "b", "nothing"] as [StaticString] {
            #expect(throws: ServiceFailure.unparsable) { try json.integer(json.member(wrong)) }
        }
        for wrong in ["c", "d", "b", "a", "aa", "nothing"] as [StaticString] {
            #expect(throws: ServiceFailure.unparsable) { try json.string(json.member(wrong)) }
        }
        #expect(throws: ServiceFailure.unparsable) { try json.unescaped(json.member("e")) }
        #expect(throws: ServiceFailure.unparsable) { try json.members(of: a) }
        #expect(throws: ServiceFailure.unparsable) { try json.elements(of: json.member("aa")) }
        #expect(throws: ServiceFailure.unparsable) { try json.member("n", of: a) }
    }
}

@Suite struct ServiceClockTests {
    @Test func anHourIsLearnedOnce() {
        let clock = ServiceClock()
        #expect(clock.time(0, wall: 10_000) == 10_000)
        #expect(clock.learn(13_600, 0, wall: 10_000))
        #expect(clock.time(10, wall: 10_010) == 13_610)
        // A request from before the correction is worth asking again; a later one is not.
        #expect(clock.learn(13_611, 10, wall: 10_010))
        #expect(!clock.learn(13_700, 100, wall: 10_100))
        // The machine slept in a way that its clock does not count.
        #expect(clock.learn(13_900, 200, wall: 13_900))
        #expect(clock.time(200, wall: 13_900) == 13_900)
    }

    @Test func whatWasLearnedOutlivesTheSettingOfTheMachinesClock() {
        let clock = ServiceClock()
        #expect(clock.learn(20_000, 0, wall: 10_000, isProven: false))
        #expect(clock.time(5, wall: 20_005) == 20_005)
        #expect(clock.time(3600, wall: 0) == 23_600)
        // It is too late for a request from before, whatever the machine's clock says.
        #expect(!clock.learn(nil, 3600, wall: 10_000))
    }

    @Test func smallDifferencesAreNotTheReason() {
        let clock = ServiceClock()
        #expect(!clock.learn(10_020, 0, wall: 10_000))
        #expect(!clock.learn(nil, 0, wall: 10_000))
        #expect(clock.time(0, wall: 10_000) == 10_000)
    }

    /// Such a request has expired by a difference that others outlast.
    @Test func ofRequestsThatAreValidForSecondsTheyMayBe() {
        let clock = ServiceClock()
        #expect(!clock.learn(10_005, 0, wall: 10_000, validity: 10))
        #expect(clock.learn(10_015, 0, wall: 10_000, validity: 10))
        #expect(clock.time(0, wall: 10_000) == 10_015)
    }

    @Test func whatIsNotProvenMovesItByADayAtMost() {
        let clock = ServiceClock()
        #expect(!clock.learn(1_000_000, 0, wall: 10_000, isProven: false))
        #expect(!clock.learn(.max, 0, wall: 10_000))
        #expect(clock.learn(10_000 + 86_400, 0, wall: 10_000, isProven: false))
    }
}

extension ServiceClock {
    /// - Parameter second: The moment, in seconds.
    fileprivate func time(_ second: UInt64, wall: UInt64) -> UInt64 {
        time(at: Tick(nanoseconds: second * 1_000_000_000), wall: wall)
    }

    fileprivate func learn(
        _ time: UInt64?, _ second: UInt64, wall: UInt64, validity: UInt64 = 600, isProven: Bool = true
    ) -> Bool {
        learn(
            time, at: Tick(nanoseconds: second * 1_000_000_000), wall: wall, validity: validity, isProven: isProven)
    }
}
