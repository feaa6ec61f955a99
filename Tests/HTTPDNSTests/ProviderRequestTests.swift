import Base
import Cryptography
import DNSWire
import HTTP
import Testing

@testable import HTTPDNS

/// What is sent to each provider. The signatures are the providers' own vectors, or by another implementation
/// (Python's hashlib, hmac and pyca/cryptography).
@Suite struct ProviderRequestTests {
    private let fields = "User-Agent: httpdnsd\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n"
    private static let secret = Array("IAmASecret".utf8)
    static let alibabaSecret = Array("00112233445566778899aabbccddeeff".utf8)

    static func account(
        _ provider: Provider, id: UInt32 = 100_000, secret: [UInt8], aesKey: [UInt8]? = nil, routeIp: IPAddress? = nil,
        authExpirySeconds: Int = 600
    ) throws -> any ServiceAccount {
        try Credential.signed(provider, id: id, secret: Secret(secret), aesKey: aesKey.map { Secret(hexadecimal($0)) })
            .account(routeIp: routeIp, authExpirySeconds: authExpirySeconds)
    }

    @Test func alibabaSignsWithHMAC() throws {
        let account = try Self.account(.alibaba, secret: Self.alibabaSecret)
        let request = try account.request(names("www.example.com"), family: .both, host: "h", at: 1_700_000_000)
        #expect(
            text(request)
                == "GET /v2/d?dn=www.example.com&exp=1700000600&id=100000&m=0&q=4,6&v=1.0"
                + "&s=85a84cc69eac02a602dea38044f81632fe3256ab5e89a2760c512c4c4368a515 HTTP/1.1\r\nHost: h\r\n" + fields
        )
    }

    /// The service's addresses come beside the answer for a name, which is none of the operator's.
    @Test func baiduIsAskedForItsAddressesBesideItsOwnName() throws {
        let target = try Self.account(.baidu, id: 107_080, secret: Self.secret).listTarget(at: 1_700_000_000)
        #expect(
            text(target)
                == "/v4/resolve?account_id=107080&dn=httpdns.baidubce.com&type=dual_stack&alt_server_ip=true"
                + "&t=1700000600&sign=8bd6d08dab98567814b382f25e8c79df")
    }

    /// It stands behind the signature, which does not cover it, and is the same for all requests of an account.
    @Test func alibabaIsToldOfTheSession() throws {
        func account() throws -> any ServiceAccount {
            try Credential.signed(.alibaba, id: 100_000, secret: Secret(Self.alibabaSecret), aesKey: nil).account(
                traces: true)
        }
        let (one, other) = (try account(), try account())
        let session = try #require(one.sessionID)
        #expect(session.count == 12 && session.allSatisfy { $0.isHexDigit } && session != other.sessionID)
        for _ in 0..<2 {
            let request = text(try one.request(names("www.example.com"), family: .both, host: "h", at: 1_700_000_000))
            #expect(
                request.hasPrefix(
                    "GET /v2/d?dn=www.example.com&exp=1700000600&id=100000&m=0&q=4,6&v=1.0"
                        + "&s=85a84cc69eac02a602dea38044f81632fe3256ab5e89a2760c512c4c4368a515&sid=\(session) HTTP/1.1\r\n"
                ))
        }
        #expect(try Self.account(.alibaba, secret: Self.alibabaSecret).sessionID == nil)
    }

    /// IV, key and signature of the vector; the request's own IV is another each time, so the signer is asked alone.
    @Test func alibabaSignsWhatIsEncrypted() throws {
        let secret = Hexadecimal.decode(Self.alibabaSecret.span) ?? []
        let signer = try RequestSigner(hmacSHA256: secret)
        let key = (0..<16).map { UInt8($0) }
        let cipher = try PayloadCipher(.aes, key: key)
        let plain = Array("{\"dn\":\"www.example.com\",\"q\":\"4,6\"}".utf8)
        let payload = try cipher.encrypt(plain.span, iv: (16..<32).map { UInt8($0) }[...])
        var signed = Array("enc=".utf8)
        Hexadecimal.append(payload.span, to: &signed)
        #expect(
            text(signed)
                == "enc=101112131415161718191a1b1c1d1e1f4a3bd6d0ce0473452fc77e35a52ff82fd02de117d8e7772cbfe3272157706e70"
                + "18b6b5a36d9bc1718a3e2d466076edb6")
        signed += Array("&exp=1700000600&id=100000&m=1&v=1.0".utf8)
        var signature: [UInt8] = []
        signer.appendSignature(of: signed.span, to: &signature)
        #expect(text(signature) == "6375aefc92b6485b3fc8631cb95fde96ef71692948022b24ce43a6a9664ab004")

        let account = try Self.account(
            .alibaba, secret: Self.alibabaSecret, aesKey: key, routeIp: .v4(203, 0, 113, 7))
        let request = text(
            try account.request(names("www.example.com"), family: .both, host: "h", at: 1_700_000_000))
        let match = try #require(
            request.firstMatch(
                of: #/GET /v2/d\?(enc=([0-9a-f]+)&exp=1700000600&id=100000&m=1&v=1\.0)&s=([0-9a-f]{64}) /#))
        var expected: [UInt8] = []
        signer.appendSignature(of: Array(match.1.utf8).span, to: &expected)
        #expect(text(expected) == match.3)
        #expect(
            try decrypted(match.2, cipher) == "{\"dn\":\"www.example.com\",\"q\":\"4,6\",\"cip\":\"203.0.113.7\"}")
        #expect(!request.contains("example"))
    }

    /// The vector of AES-GCM: signed as any other mode is. Nothing is sent in it, and no answer in it is taken.
    @Test func alibabaSignsEachModeTheSame() throws {
        let signer = try RequestSigner(hmacSHA256: Hexadecimal.decode(Self.alibabaSecret.span) ?? [])
        let signed = Array(
            ("enc=101112131415161718191a1bbf0c67c12d75949860aa7390bf46864e56d95ae459994993a7ba0b2b45313d9bf0a43d25"
                + "3118859f767972021363efe1d566&exp=1700000600&id=100000&m=2&v=1.0").utf8)
        var signature: [UInt8] = []
        signer.appendSignature(of: signed.span, to: &signature)
        #expect(text(signature) == "f4e5780a8e66b3a3e9cc714184947ce2e6aa1ba813b45d0edc7ac3abbc1e29ac")
    }

    @Test(arguments: [(Families.ipv4, "4"), (.ipv6, "6"), (.both, "4,6")])
    func alibabaLeavesOutWhatIsEmpty(family: Families, queried: String) throws {
        let account = try Self.account(.alibaba, secret: Self.alibabaSecret, routeIp: .v4(203, 0, 113, 7))
        let request = text(try account.request(names("a.example", "b.example"), family: family, host: "h", at: 0))
        #expect(
            request.hasPrefix("GET /v2/d?cip=203.0.113.7&dn=a.example,b.example&exp=600&id=100000&m=0&q=\(queried)&v"))
    }

    @Test(arguments: [
        (["www.aliyun.com"], "sign_d?host=www.aliyun.com", "60c71e98b6d7fcbb366243e224eab457"),
        (["a.example", "b.example"], "sign_resolve?host=a.example,b.example", "bff12ffc61735b9bfddd4e7bf3721ef6"),
    ])
    func alibabaVersion1(asked: [String], target: String, signature: String) throws {
        let account = try Self.account(.alibabaV1, secret: Self.secret)
        let request = try account.request(
            asked.map { Name($0)! }, family: .both, host: "h", at: 1_534_316_400 - 600)
        #expect(
            text(request)
                == "GET /100000/\(target)&query=4,6&t=1534316400&s=\(signature) HTTP/1.1\r\nHost: h\r\n" + fields)
    }

    @Test func alibabaList() throws {
        let list = AlibabaList(
            try Signing(id: 100_000, secret: Array("123456".utf8), routeIp: nil, validity: 600))
        let target = list.target(nonce: Array("abcdef2345".utf8), at: 1_632_912_372 - AlibabaList.validity)
        #expect(text(target) == "/100000/ss?n=abcdef2345&t=1632912372&s=de7be63a9f19cf11e9d455d7d4f23cb4")
        #expect(text(list.target(at: 0)).wholeMatch(of: #/.*/ss\?n=[0-9a-f]{16}&t=300&s=[0-9a-f]{32}/#) != nil)
    }

    @Test(arguments: [(Families.ipv4, "ipv4"), (.ipv6, "ipv6"), (.both, "dual_stack")])
    func baidu(family: Families, type: String) throws {
        let account = try Self.account(.baidu, id: 123_456, secret: Array("1234567890".utf8))
        let request = try account.request(
            names("www.baidu.com"), family: family, host: "httpdns.baidubce.com", at: 1_513_602_734 - 600)
        #expect(
            text(request)
                == "GET /v4/resolve?account_id=123456&dn=www.baidu.com&type=\(type)&t=1513602734"
                + "&sign=9d4eac35c33b8fa1610476ff1532643d HTTP/1.1\r\nHost: httpdns.baidubce.com\r\n" + fields)
    }

    @Test func volcengine() throws {
        let signing = try Signing(id: 1023, secret: Array("QlgAuFMwNUwN".utf8), routeIp: nil, validity: 600)
        var target = Array("/resolve".utf8)
        let values = ["1566808387000", "", "QlgAuFMwNUwN", "1023", "www.a.com,www.b.com", ""]
        signing.appendSignature(of: values.map { Array($0.utf8) }, to: &target)
        #expect(text(target) == "/resolve&sign=4b00a808d49a334991b7e50d324a9287")
        let account = try Self.account(
            .volcengine, id: 1023, secret: Array("QlgAuFMwNUwN".utf8), routeIp: .v4(203, 0, 113, 7))
        let request = try account.request(
            names("www.example.com"), family: .ipv6, host: "h", at: 1_566_808_387 - 600)
        #expect(
            text(request)
                == "GET /resolve?domain=www.example.com&account_id=1023&timestamp=1566808387000&type=AAAA&ip=203.0.113.7"
                + "&sign=9a1c2c50ed9a5d9064820de7a22af2f9 HTTP/1.1\r\nHost: h\r\n" + fields)
        #expect(throws: RequestError.nameCount(2)) {
            try account.request(names("a.example", "b.example"), family: .both, host: "h", at: 0)
        }
    }

    /// As many names as the provider takes, and not one more.
    @Test(arguments: Provider.allCases) func limits(provider: Provider) throws {
        let account =
            provider == .tencent
            ? try Credential.https(token: Secret([0x31])).account()
            : try Self.account(provider, secret: Self.alibabaSecret)
        let many = (0...provider.facts.namesPerRequest).map { Name("n\($0).example")! }
        #expect(throws: RequestError.nameCount(many.count)) {
            try account.request(many, family: .both, host: "h", at: 0)
        }
        let most = text(try account.request(many.dropLast(), family: .both, host: "h", at: 0))
        #expect(most.contains(many.dropLast().map(\.description).joined(separator: ",")))
        #expect(throws: RequestError.forbiddenName(Name("a,b.example")!)) {
            try account.request([Name("a,b.example")!], family: .both, host: "h", at: 0)
        }
    }

    @Test func secretsAreChecked() throws {
        #expect(throws: RequestError.badSecret(key: "dnsKey")) { try Self.account(.alibaba, secret: Self.secret) }
        #expect(throws: RequestError.badSecret(key: "dnsKey")) { try Self.account(.baidu, secret: []) }
        #expect(throws: RequestError.self) {
            try Self.account(.alibaba, secret: Self.alibabaSecret, aesKey: [1, 2, 3])
        }
        let credential = Credential.signed(.baidu, id: 1, secret: Secret(Self.secret), aesKey: nil)
        var dumped = ""
        dump(credential, to: &dumped)
        #expect(!"\(credential) \(dumped)".contains("IAm") && !dumped.contains("73"))
    }
}
