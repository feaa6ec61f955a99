import Base
import Cryptography
import DNSWire
import HTTPDNS
import Testing

/// The key and the hexadecimal vectors are of pyca/cryptography:
/// Cipher(algorithms.TripleDES(b"Swift!01"), modes.ECB()) and Cipher(algorithms.AES(b"Swift-HTTPDNS-16"), modes.CBC(iv)),
/// PKCS #7 padding.
let desKey = Array("Swift!01".utf8)
let aesKey = Array("Swift-HTTPDNS-16".utf8)

@Suite struct RequestTests {
    private let https = try! TencentAccount(.https(token: Secret(Array("1".utf8))))
    private let fields = "User-Agent: httpdnsd\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n"

    @Test func httpsAsksInClear() throws {
        let account = try TencentAccount(.https(token: Secret(Array("67890".utf8))))
        let request = try account.request(names("www.example.com"), family: .both, host: "119.29.29.99")
        #expect(
            text(request)
                == "GET /d?dn=www.example.com&token=67890&type=addrs&ttl=1&query=1&clientip=1 HTTP/1.1\r\n"
                + "Host: 119.29.29.99\r\n" + fields)
    }

    @Test func theServiceIsToldWhenToGiveUp() throws {
        let clear = try TencentAccount(
            .https(token: Secret(Array("67890".utf8))), routeIp: .v4(203, 0, 113, 7), timeout: 2000)
        #expect(
            text(try clear.request(names("www.example.com"), family: .ipv4, host: "h")).hasPrefix(
                "GET /d?dn=www.example.com&token=67890&ttl=1&query=1&clientip=1&timeout=2000&ip=203.0.113.7 HTTP/1.1\r\n"
            ))
        // What is encrypted anew for each request stays the last.
        let encrypted = try TencentAccount(
            .des(id: 1, key: Secret(desKey)), routeIp: .v4(203, 0, 113, 7), routeIpEncrypted: true, timeout: 5000)
        let request = text(try encrypted.request(names("www.example.com"), family: .ipv4, host: "h"))
        #expect(request.contains("&timeout=5000&ip=b70421366ccc0106359ca00a0d05acf5 HTTP/1.1\r\n"))
    }

    @Test func desIsExactlyTheDocumentedRequest() throws {
        let account = try TencentAccount(.des(id: 12345, key: Secret(desKey)))
        let request = try account.request(names("www.example.com"), family: .ipv4, host: "119.29.29.98")
        #expect(
            text(request)
                == "GET /d?dn=b9a896128400c10c5600a351f56276ad&id=12345&alg=des&ttl=1&query=1&clientip=1 HTTP/1.1\r\n"
                + "Host: 119.29.29.98\r\n" + fields)
    }

    @Test func aesHasAFreshVectorEachTime() throws {
        let account = try TencentAccount(.aes(id: 12345, key: Secret(aesKey)))
        let cipher = try PayloadCipher(.aes, key: aesKey)
        var seen: Set<String> = []
        for _ in 0..<3 {
            let request = text(try account.request(names("a.example", "b.example"), family: .ipv6, host: "[::1]"))
            let parts = try #require(
                request.wholeMatch(
                    of:
                        /GET \/d\?dn=([0-9a-f]{96})(&id=12345&alg=aes&type=aaaa&ttl=1&query=1&clientip=1)( HTTP\/1.1\r\nHost: \[::1\]\r\n)([^\0]*)/
                ))
            #expect(parts.4 == fields)
            #expect(try decrypted(parts.1, cipher) == "a.example,b.example")
            seen.insert(String(parts.1.prefix(32)))
        }
        #expect(seen.count == 3)
    }

    @Test func aBatchIsEncryptedAsOneText() throws {
        let account = try TencentAccount(.des(id: 7, key: Secret(desKey)))
        let request = try account.request(names("A.example.", "b.EXAMPLE"), family: .both, host: "dns.example")
        #expect(
            text(request).hasPrefix(
                "GET /d?dn=54d4bbee79df5bc2da5de7f474f661250caa44d40dac4c09&id=7&alg=des&type=addrs&ttl=1"))
    }

    @Test func aBatchInClearKeepsItsCommas() throws {
        let request = try https.request(names("a.example", "b-c_d.example"), family: .ipv6, host: "dns.example")
        #expect(text(request).hasPrefix("GET /d?dn=a.example,b-c_d.example&token=1&type=aaaa&ttl=1"))
    }

    @Test(arguments: [
        (false, "&ip=203.0.113.7 HTTP/1.1\r\n"), (true, "&ip=b70421366ccc0106359ca00a0d05acf5 HTTP/1.1\r\n"),
    ])
    func routeAddress(encrypted: Bool, expected: String) throws {
        let account = try TencentAccount(
            .des(id: 1, key: Secret(desKey)), routeIp: .v4(203, 0, 113, 7), routeIpEncrypted: encrypted)
        let request = try account.request(names("example.com"), family: .ipv4, host: "h")
        #expect(text(request).contains("&clientip=1" + expected))
    }

    @Test func routeAddressUnderTLSIsNeverEncrypted() throws {
        let account = try TencentAccount(
            .https(token: Secret(Array("1".utf8))), routeIp: IPAddress("2001:db8::7"), routeIpEncrypted: true)
        let request = try account.request(names("example.com"), family: .ipv4, host: "h")
        #expect(text(request).contains("&clientip=1&ip=2001:db8::7 HTTP/1.1\r\n"))
    }

    @Test func routeAddressWithAESIsDecryptable() throws {
        let account = try TencentAccount(
            .aes(id: 1, key: Secret(aesKey)), routeIp: .v4(203, 0, 113, 7), routeIpEncrypted: true)
        let request = text(try account.request(names("example.com"), family: .ipv4, host: "h"))
        let match = try #require(request.firstMatch(of: /&ip=([0-9a-f]{64}) HTTP/))
        #expect(try decrypted(match.1, PayloadCipher(.aes, key: aesKey)) == "203.0.113.7")
    }

    /// 1744701968 + 600 = 1744702568.
    @Test func theExpiryIsEncryptedWithTheNames() throws {
        let account = try TencentAccount(.des(id: 12345, key: Secret(desKey)), authExpirySeconds: 600)
        let request = try account.request(
            names("a.example", "b.example"), family: .ipv4, host: "h", at: 1_744_701_968)
        #expect(
            text(request).hasPrefix(
                "GET /d?dn=54d4bbee79df5bc2da5de7f474f6612566e0150d3343ee6894b1258762053854&id=12345&alg=des&ttl=1"))
        // The time goes on from request to request.
        let later = try account.request(names("a.example", "b.example"), family: .ipv4, host: "h", at: 1_744_701_969)
        #expect(text(later).hasPrefix("GET /d?dn=54d4bbee79df5bc2da5de7f474f6612566e0150d3343ee68"))
        #expect(later != request)
    }

    @Test func theExpiryWithAES() throws {
        let account = try TencentAccount(.aes(id: 1, key: Secret(aesKey)), authExpirySeconds: 600)
        let request = text(
            try account.request(names("a.example", "b.example"), family: .ipv4, host: "h", at: 1_744_701_968))
        let match = try #require(request.firstMatch(of: /dn=([0-9a-f]{96})&id=1/))
        #expect(try decrypted(match.1, PayloadCipher(.aes, key: aesKey)) == "a.example,b.example;1744702568")
    }

    @Test func theExpiryInClear() throws {
        let account = try TencentAccount(.https(token: Secret(Array("1".utf8))), authExpirySeconds: 600)
        let request = try account.request(names("qq.com"), family: .ipv4, host: "h", at: 1_744_701_968)
        #expect(text(request).hasPrefix("GET /d?dn=qq.com;1744702568&token=1&ttl=1"))
        // Without the setting the time does not matter.
        #expect(
            try https.request(names("qq.com"), family: .ipv4, host: "h", at: 1)
                == https.request(names("qq.com"), family: .ipv4, host: "h", at: 2))
    }

    @Test func listTargets() throws {
        let expected: [(Credential, String)] = [
            (.https(token: Secret(Array("67890".utf8))), "token=67890"),
            (.aes(id: 12345, key: Secret(aesKey)), "id=12345&alg=aes"),
            (.des(id: 12345, key: Secret(desKey)), "id=12345&alg=des"),
        ]
        for (credential, query) in expected {
            let account = try TencentAccount(credential, routeIp: .v4(1, 2, 3, 4), authExpirySeconds: 600)
            #expect(text(try account.listTarget(at: 0)) == "/conf?\(query)")
        }
    }

    /// Every octet that a label can hold and that is not one of the allowed ones would forge something.
    @Test func forgingNamesAreRefused() throws {
        for account in [
            try TencentAccount(.https(token: Secret(Array("1".utf8)))),
            try TencentAccount(.des(id: 1, key: Secret(desKey))),
        ] {
            for octet in UInt8.min...UInt8.max {
                let wire: [UInt8] = [2, UInt8(ascii: "a"), octet, 3] + Array("com".utf8) + [0]
                let name = Name(wire: wire.span, at: 0, length: wire.count)
                let character = Character(UnicodeScalar(octet))
                let allowed =
                    character.isASCII && (character.isLetter || character.isNumber || "-_".contains(character))
                if allowed {
                    #expect(throws: Never.self) { try account.request([name], family: .ipv4, host: "h") }
                } else {
                    #expect(throws: RequestError.forbiddenName(name)) {
                        try account.request([name], family: .ipv4, host: "h")
                    }
                }
            }
            #expect(throws: RequestError.forbiddenName(.root)) {
                try account.request(names("a.example") + [.root], family: .ipv4, host: "h")
            }
            // What was refused must not show in the next request.
            #expect(throws: Never.self) { try account.request(names("a.example"), family: .ipv4, host: "h") }
        }
    }

    @Test func aRefusedRequestLeavesNothingBehind() throws {
        #expect(throws: RequestError.self) {
            try https.request(names("secret.example", "b,c.example"), family: .ipv4, host: "h")
        }
        let request = try https.request(names("a.example"), family: .ipv4, host: "h")
        #expect(text(request).hasPrefix("GET /d?dn=a.example&token=1"))
    }

    @Test(arguments: [0, 9]) func nameCounts(count: Int) throws {
        #expect(throws: RequestError.nameCount(count)) {
            try https.request((0..<count).map { Name("n\($0).example")! }, family: .ipv4, host: "h")
        }
    }

    @Test func theLongestBatchFitsAReaderOfRequests() throws {
        let label = String(repeating: "a", count: 63)
        let longest = (0..<8).map { Name("\(label).\(label).\(label).\(label.dropFirst(3))\($0)")! }
        #expect(longest[0].wire.count == 255)
        let account = try TencentAccount(
            .aes(id: .max, key: Secret(aesKey)), routeIp: .v4(1, 2, 3, 4), routeIpEncrypted: true)
        let request = try account.request(longest, family: .both, host: "dns.example")
        #expect(request.count < 8192)
    }

    @Test func badCredentials() {
        for token in ["", "1 2", "1&dn=x", "1\r\n", "é"] {
            #expect(throws: RequestError.badToken) { try TencentAccount(.https(token: Secret(Array(token.utf8)))) }
        }
        #expect(throws: RequestError.self) { try TencentAccount(.aes(id: 1, key: Secret(Array("short".utf8)))) }
        #expect(throws: RequestError.self) { try TencentAccount(.des(id: 1, key: Secret(aesKey))) }
    }

    @Test func credentialsDoNotPrint() {
        var dumped = ""
        for credential: Credential in [
            .https(token: Secret(Array("67890".utf8))), .aes(id: 1, key: Secret(aesKey)),
            .des(id: 1, key: Secret(desKey)),
        ] {
            dump(credential, to: &dumped)
            dumped += "\(credential) \(String(reflecting: credential)) "
        }
        // Printed as an array of numbers or as text.
        for secret in [Array("67890".utf8), aesKey, desKey] {
            #expect(!dumped.contains(text(secret)))
            #expect(!dumped.contains("\(secret[0]), \(secret[1])") && !dumped.contains("- \(secret[0])"))
        }
    }
}
