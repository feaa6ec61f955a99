import Base
import HTTP
import HTTPDNS
import TestSupport
import Testing

@Suite struct ServiceConfigurationTests {
    private let https = try! TencentAccount(.https(token: Secret(Array("67890".utf8))))

    private func read(_ body: String) throws -> ServiceConfiguration {
        try https.parseConfiguration(HTTPResponse(ok: body))
    }

    @Test(arguments: [
        ("log:0|domain:0|ip:119.29.29.98;119.28.28.98|ttl:60", "119.29.29.98 119.28.28.98", 60),
        ("log:1|domain:1|ip:119.29.29.98;119.28.28.98;|ttl:1440", "119.29.29.98 119.28.28.98", 1440),
        ("ttl:1|ip:119.29.29.98|domain:0|log:0", "119.29.29.98", 1),
        (" log:0|domain:0|ip:119.29.29.98|ttl:5\r\n", "119.29.29.98", 5),
        // Missing or senseless times.
        ("log:0|domain:0|ip:192.0.2.1", "192.0.2.1", 60), ("log:0|domain:0|ip:192.0.2.1|ttl:0", "192.0.2.1", 60),
        ("log:0|domain:0|ip:192.0.2.1|ttl:1441", "192.0.2.1", 60),
        ("log:0|domain:0|ip:192.0.2.1|ttl:99999999999999999999999", "192.0.2.1", 60),
        // No address is an answer.
        ("log:0|domain:1|ip:|ttl:30", "", 30), ("log:0|domain:1|ttl:30", "", 30), ("log:0|domain:1", "", 60),
        ("log:0|domain:0|ip:2001:db8::1;192.0.2.1;192.0.2.1", "2001:db8::1 192.0.2.1", 60),
        // What is not known, with a number.
        ("new:1|log:0|other:27|domain:0|ip:192.0.2.1|other:28", "192.0.2.1", 60),
    ])
    func whatIsRead(body: String, expected: String, minutes: Int) throws {
        let configuration = try read(body)
        #expect(configuration.addresses.map(\.description).joined(separator: " ") == expected)
        #expect(configuration.ttlMinutes == minutes)
        for (account, cipher) in try encryptedAccounts() {
            #expect(try account.parseConfiguration(HTTPResponse(encrypted: body, cipher)) == configuration)
        }
    }

    @Test(arguments: [
        "", " ", "192.0.2.1", "www.example.com.:192.0.2.1,60|203.0.113.7", "<html>", "ip", "|||", ":",
        // As much as fits into one block, which needs no key.
        "ip:192.0.2.1", "ip:6.6.6.6|ttl:9", "log:0", "ttl:9", "ip:;;",
        // A bad address, or one that no machine has, among good ones or alone.
        "log:0|domain:0|ip:192.0.2.1;nonsense;192.0.2.2|ttl:60", "log:0|domain:0|ip:nonsense|ttl:60",
        "log:0|domain:0|ip:192.0.2.1;|ttl:60|ip:;", "log:0|domain:0|ip:192.0.2.1;;192.0.2.2", "log:0|domain:0|ip:;",
        "log:0|domain:0|ip:192.0.2.1;0.0.0.0", "log:0|domain:0|ip:224.0.0.1", "log:0|domain:0|ip:255.255.255.255",
        "log:0|domain:0|ip:0.1.2.3", "log:0|domain:0|ip:ff02::1", "log:0|domain:0|ip:::",
        "log:0|domain:0|ip:::ffff:192.0.2.1", "log:0|domain:0|ip:192.0.2.1,60", "log:0|domain:0|ip:0",
        "log:0|domain:0|ip: 192.0.2.1|ttl:60",
        // Something unreadable, which may be what a changed block decrypts to, beside what is readable.
        "log:0|domain:0|ip:192.0.2.1|ttl:60|", "log:0|domain:0|ip:192.0.2.1|ttl:6x", "log:0|domain:0|ttl:-5",
        "log:0|domain:0|ttl:", "log:x|domain:0|ip:192.0.2.1|ttl:60", "log:0|domain:|ip:192.0.2.1|ttl:60",
        "log:0|domain:0|other|ip:192.0.2.1", "log:0|domain:0|other:x|ip:192.0.2.1",
        "log:0|domain:0|\u{1}\u{7f}:0|ip:192.0.2.1", "log:0|domain:0|OTHER:0|ip:192.0.2.1",
        // The list that was there, given another name.
        "log:0|domain:0|xp:119.29.29.98|ip:6.6.6.6|ttl:60", "ip:6.6.6.6|log:0p:119.29.29.98;119.28.28.98|ttl:60",
        // A field twice.
        "log:0|domain:0|ip:192.0.2.1|ip:192.0.2.1", "log:0|log:0|domain:0", "log:0|domain:0|ttl:7|ttl:8",
        // One of those missing that make it long.
        "log:0|ip:192.0.2.1|ttl:60", "domain:0|ip:192.0.2.1|ttl:60",
    ])
    func whatIsRefused(body: String) throws {
        #expect(throws: ServiceFailure.unparsable) { try read(body) }
        for (account, cipher) in try encryptedAccounts() {
            #expect(throws: ServiceFailure.undecryptable) {
                try account.parseConfiguration(HTTPResponse(encrypted: body, cipher))
            }
        }
    }

    @Test func aLongListIsCut() throws {
        let list = (1...100).map { "192.0.2.\($0)" }
        let configuration = try read("log:0|domain:0|ip:" + list.joined(separator: ";"))
        #expect(configuration.addresses.map(\.description) == Array(list.prefix(ServiceProtocol.addressesPerService)))
    }

    @Test func errorStatusesAreFailures() {
        for status in [204, 401, 404, 429, 500] {
            #expect(throws: ServiceFailure.status(status)) {
                try https.parseConfiguration(HTTPResponse(status: status, body: Array("ip:192.0.2.1".utf8)))
            }
        }
    }

    /// `log:0|domain:0|ip:192.0.2.98;192.0.2.99|ttl:60`, encrypted as in the other tests.
    @Test func encryptedConfigurations() throws {
        let expected = ServiceConfiguration(addresses: addresses("192.0.2.98", "192.0.2.99"), ttlMinutes: 60)
        let des = try TencentAccount(.des(id: 1, key: Secret(desKey)))
        let desBody =
            "122a9aaa6683d56618f5ec90cb251cc2858a350eb3fc75f3db51d51c7132a722195f0426c19a955fb1bd630d187bc15d"
        #expect(try des.parseConfiguration(HTTPResponse(ok: desBody + "\n")) == expected)
        let aes = try TencentAccount(.aes(id: 1, key: Secret(aesKey)))
        let aesBody =
            "f0e1d2c3b4a5968778695a4b3c2d1e0f5a3bde8c5330182a2fb22a984482cc3a587d988a6498c5208d0b08bd401a285362270d7b0ddeb31b0b7a93a2b5281e0e"
        #expect(try aes.parseConfiguration(HTTPResponse(ok: aesBody)) == expected)
        for account in [des, aes] {
            #expect(throws: ServiceFailure.undecryptable) {
                try account.parseConfiguration(HTTPResponse(ok: "ip:192.0.2.1|ttl:60"))
            }
            #expect(throws: ServiceFailure.undecryptable) { try account.parseConfiguration(HTTPResponse(ok: "")) }
        }
        #expect(throws: ServiceFailure.undecryptable) { try aes.parseConfiguration(HTTPResponse(ok: desBody)) }
    }

    @Test func hostileConfigurations() {
        var generator = Chance.announced("hostileConfigurations")
        let whole = Array("log:0|domain:0|ip:119.29.29.98;2001:db8::1;|ttl:60".utf8)
        for length in 0..<whole.count {
            _ = try? https.parseConfiguration(HTTPResponse(status: 200, body: Array(whole[..<length])))
        }
        for _ in 0..<20_000 {
            let body = mutate(whole, with: Array("|:;, \n0".utf8), &generator)
            guard let read = try? https.parseConfiguration(HTTPResponse(status: 200, body: body)) else { continue }
            #expect((1...1440).contains(read.ttlMinutes) && read.addresses.count <= ServiceProtocol.addressesPerService)
        }
    }
}
