import Base
import DNSWire
import HTTP
import HTTPDNS
import Testing

/// A refusal names the key of the configuration that is likely wrong, as it stands in the account's own section.
@Suite struct AccountKeysTests {
    private static let secret = Array("00112233445566778899aabbccddeeff".utf8)
    private static let aesKey = (0..<16).map { UInt8($0) }
    private static let https = Credential.https(token: Secret(Array("101".utf8)))
    private static let aes = Credential.aes(id: 1, key: Secret(Array("0123456789abcdef".utf8)))
    private static let des = Credential.des(id: 1, key: Secret(Array("01234567".utf8)))

    private static func signed(_ provider: Provider, aesKey: [UInt8]? = nil) -> Credential {
        .signed(provider, id: 1, secret: Secret(secret), aesKey: aesKey.map { Secret(hexadecimal($0)) })
    }

    private func failure(_ credential: Credential, _ status: Int, _ body: String) throws -> ServiceFailure? {
        let account = try credential.account()
        let response = HTTPResponse(status: status, body: Array(body.utf8))
        return #expect(throws: ServiceFailure.self) {
            try account.parse(response, names: [Name("a.example")!], family: .both)
        }
    }

    @Test(arguments: [
        (https, 401, "", "(HTTP status 401): is SECTION.token right?"),
        (aes, 403, "", "(HTTP status 403): are SECTION.dnsId and SECTION.dnsKey right?"),
        (des, 401, "", "(HTTP status 401): are SECTION.dnsId and SECTION.dnsKey right?"),
        (aes, 200, "00", "read: are SECTION.dnsKey and SECTION.encryptType right?"),
        (des, 200, "00", "read: are SECTION.dnsKey and SECTION.encryptType right?"),
        (signed(.alibaba), 403, "{\"code\":\"InvalidSignature\"}", "(InvalidSignature): is SECTION.dnsKey right?"),
        (signed(.alibabaV1), 403, "{\"code\":\"InvalidSignature\"}", "(InvalidSignature): is SECTION.dnsKey right?"),
        (signed(.volcengine), 403, "{\"code\":\"InvalidSignature\"}", "(InvalidSignature): is SECTION.dnsKey right?"),
        (signed(.baidu), 403, "{\"msg\":\"InvalidSignature\"}", "(InvalidSignature): is SECTION.dnsKey right?"),
        (signed(.alibaba), 403, "{\"code\":\"InvalidAccount\"}", "(InvalidAccount): is SECTION.dnsId right?"),
        (signed(.baidu), 403, "{\"msg\":\"AccountNotExists\"}", "(AccountNotExists): is SECTION.dnsId right?"),
        (signed(.volcengine), 403, "", "(HTTP status 403): are SECTION.dnsId and SECTION.dnsKey right?"),
        (signed(.baidu), 403, "{\"msg\":\"Unheard\"}", "(Unheard): are SECTION.dnsId and SECTION.dnsKey right?"),
        (
            signed(.alibaba, aesKey: aesKey), 400, "{\"code\":\"MissingArgument\"}",
            "missing in it; are SECTION.aesKey and SECTION.provider right?"
        ),
        (
            signed(.alibaba, aesKey: aesKey), 200, "{\"code\":\"success\",\"mode\":1,\"data\":\"AAAA\"}",
            "read: are SECTION.aesKey and SECTION.encryptType right?"
        ),
        (
            signed(.alibaba, aesKey: aesKey), 403, "",
            "(HTTP status 403): are SECTION.dnsId and SECTION.dnsKey and SECTION.aesKey right?"
        ),
        (
            signed(.alibaba), 403, "{\"code\":\"InvalidDuration\"}",
            "too long; is this machine's clock right, and SECTION.authExpirySeconds short enough?"
        ),
        (signed(.alibaba), 400, "{\"code\":\"InvalidHost\"}", "are the names of NAMES registered with the account?"),
        (signed(.alibaba), 403, "{\"code\":\"ServiceLevelDeny\"}", "plan used up, or SECTION.dnsId wrong?"),
        (https, 429, "", "(HTTP status 429): does SECTION.queriesPerSecond keep to its plan?"),
        (https, 404, "", "(HTTP status 404): is SECTION.dnsIp right?"),
    ])
    func areNamed(_ credential: Credential, _ status: Int, _ body: String, _ said: String) throws {
        let failure = try failure(credential, status, body)
        for (section, names) in [("httpdns", "domains.intercept"), ("upstreams.shop", "upstreams.shop.domains")] {
            let words = failure?.words(AccountKeys(section, names: names, credential))
            let expected = said.replacing("SECTION", with: section).replacing("NAMES", with: names)
            #expect(words?.contains(expected) == true, "\(words ?? "") is not \(expected)")
        }
    }

    @Test func aFilesKeyIsNamedInThePlaceOfTheSecrets() throws {
        let keys = AccountKeys("httpdns", names: "", Self.aes, fromFiles: ["dnsKey"])
        #expect(
            ServiceFailure.status(403).words(keys).hasSuffix(
                "are httpdns.dnsId and httpdns.dnsKeyFile right? If so, the account may have run out (see the provider's console)"
            ))
    }

    @Test("no secret that a service repeats is said")
    func secrets() throws {
        let credential = Self.signed(.alibaba, aesKey: Self.aesKey)
        let keys = AccountKeys("httpdns", names: "", credential)
        let digits = "000102030405060708090A0B0C0D0E0F"
        for secret in [String(decoding: Self.secret, as: UTF8.self), digits, digits.lowercased()] {
            for code in [secret, "bad " + secret, secret + "-x"] {
                let words = try failure(credential, 403, "{\"code\":\"\(code)\"}")?.words(keys) ?? ""
                #expect(words.contains("(HTTP status 403)") && !words.contains(secret))
            }
        }
        #expect(!"\(keys)".contains("00112233"), "nor by who prints the keys")
    }
}
