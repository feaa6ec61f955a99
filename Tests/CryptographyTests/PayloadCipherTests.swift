import Base
import Cryptography
import Testing

/// The cipher against the protocol's vectors (computed with Python `cryptography` and OpenSSL) and hostile payloads.
struct PayloadCipherTests {
    static let desKey = "Swift!01"
    static let aesKey = "Swift-HTTPDNS-16"
    static let iv1 = "000102030405060708090a0b0c0d0e0f"
    static let iv2 = "f0e1d2c3b4a5968778695a4b3c2d1e0f"
    static let batch = "a.example.:192.0.2.1,60|203.0.113.7\nb.example.:0|203.0.113.7"
    static let both = "www.example.com.:192.0.2.1,120-2001:db8::1;2001:db8::2,60|203.0.113.7"
    static let one = "www.example.com.:192.0.2.1;192.0.2.2,120|203.0.113.7"

    static let des: [(key: String, plaintext: String, hex: String)] = [
        // Published: the service's own documentation, and lua-resty-des.
        ("dnspodpa", "www.dnspod.cn", "87ae992c1321f299da3c0210a9900ae7"),
        ("weijianl", "www.google.com", "cd52888ecabcac455a14ddbac7f03d97"),
        ("dnspodpa", "121.12.53.35;106.227.19.35", "144e9041e2ae827f20be462611a716c681f90c862ccdf0b31ac7446732a7f01c"),
        ("dnspodpa", "example.com", "ee4ca61cdd71ca2a4d48de8c23ebea31"),
        (desKey, "www.example.com", "b9a896128400c10c5600a351f56276ad"),
        (desKey, "example.com", "10f08442428622aa6d3d41ae70a3697a"),
        (desKey, "a.example,b.example", "54d4bbee79df5bc2da5de7f474f661250caa44d40dac4c09"),
        (desKey, "abcdefg8", "57dd363034b3210bd9abf7f615f4600f"),
        (desKey, "203.0.113.7", "b70421366ccc0106359ca00a0d05acf5"),
        (
            desKey, "a.example,b.example;1744702568",
            "54d4bbee79df5bc2da5de7f474f6612566e0150d3343ee6894b1258762053854"
        ),
        (desKey, "", "d9abf7f615f4600f"),
        (desKey, "0", "46524d1013c1dd57"),
        (desKey, "192.0.2.1;192.0.2.2", "64c9a1dbd556d64c13312ffa51a52502e27435be32e3aa64"),
        (desKey, "192.0.2.1;192.0.2.2,120", "64c9a1dbd556d64c13312ffa51a525029e8fe0ee4751c0ec"),
        (
            desKey, one,
            "b9a896128400c10c262edfa949dd9e1590fee9f660550227c15404ead7c18a00ce073b42c33c8ddd66adc3a107c42cc9"
                + "d7baf42beed711f5"
        ),
        (
            desKey, both,
            "b9a896128400c10c262edfa949dd9e1590fee9f660550227009883c52df888082506fa8170738d8b607ee5cd7f580da1"
                + "93186c7de049f9c9a0cfe776ae03b8c39146031482dd85ec"
        ),
        (
            desKey, batch,
            "54d4bbee79df5bc2ffbea84f553d12aa8678f67c12479c86b70421366ccc01068b8659e4d587bcf72899a9946b62abf0"
                + "66adc3a107c42cc9d7baf42beed711f5"
        ),
        // printf '%s' PLAINTEXT | openssl enc -des-ecb -provider legacy -provider default -K 5377696674213031 | xxd -p
        (
            desKey, enc,
            "375fdfa061e10b0afebde705ac278dfdfe7ccca11f82647be718548078b0be3a7b73fecfbf68086c889585c69daf5354"
                + "3d2fa67ac8a023e8a0cfe776ae03b8c3fbb48423a29e5ea3"
        ),
    ]

    static let aes: [(plaintext: String, iv: String, hex: String)] = [
        ("www.example.com", iv1, "beb0f5b32e275ea7e0a124a03fe8885c"),
        ("example.com", iv1, "ff2e181d71ccbc45033f971ecedd52e8"),
        ("a.example,b.example", iv1, "2e72d2166251992be66396dc7393cdbf9c89b8a97a2a27bc82727e355abaa267"),
        ("203.0.113.7", iv1, "20c7b8aa121c3a8cc0fe8cdb5ee99105"),
        (
            "a.example,b.example;1744702568", iv1,
            "2e72d2166251992be66396dc7393cdbf4969f9382f72a057f3eaf7506d16c9f4"
        ),
        ("", iv2, "6741977608769254b611f592d0940267"),
        ("0", iv2, "43dfca5a0ade64b18aa5f101bd6e8cae"),
        ("192.0.2.1;192.0.2.2,120", iv2, "3610ecd4d8f448c7a2a2555a7e65b22b99b7427c3719db9d09737bf671583c31"),
        (
            one, iv2,
            "71db44e2074562b56ed324b5a4986c70b0a852b5df6653459c0b98a64e313dc7d5bd8a59a7a0976c2cbcd0cabb9cfdd9"
                + "11144863add89565eb2850be825b2981"
        ),
        (
            both, iv2,
            "71db44e2074562b56ed324b5a4986c705495f49cdcd63d888aa3958467b875a63738be0ebb9bf26ce98ad490fca27c6a"
                + "ac4253cd8163acf86fbd8da4d645ab86949e385ff4e96d954590a0aaba5e9f60"
        ),
        (
            batch, iv2,
            "d4388fdb3bf34008f72c4eed72dbe825a522c87928121ecc47aba27512c7414ce5795757ad4c75a25a548e11c49a735e"
                + "73d92b21dffe17a79fdcaeb662b652ed"
        ),
        // printf '%s' PLAINTEXT | openssl enc -aes-128-cbc -K 53776966742d48545450444e532d3136 -iv IV | xxd -p
        (
            enc, "00112233445566778899aabbccddeeff",
            "49cdcf6cd1c25b7632e96d032ee5111f6a09dad95640567182c55c060e1725990145dd869495f52b261764496885f41e"
                + "85ca1b357f121dcb98202fa8218d097559c0701a5e655f438e1b721e0a3bc329"
        ),
    ]
    static let enc = "{\"www.example.com.:192.0.2.1;192.0.2.2,120-2001:db8::1,60|203.0.113.7\"}"

    @Test(arguments: des)
    func desVectors(key: String, plaintext: String, hex: String) throws {
        let cipher = try PayloadCipher(.des, key: Array(key.utf8))
        #expect(try cipher.encrypt(Array(plaintext.utf8)) == bytes(hex))
        #expect(try cipher.decrypt(bytes(hex)) == Array(plaintext.utf8))
    }

    @Test(arguments: aes)
    func aesVectors(plaintext: String, iv: String, hex: String) throws {
        let cipher = try PayloadCipher(.aes, key: Array(Self.aesKey.utf8))
        #expect(try cipher.encrypt(Array(plaintext.utf8), iv: bytes(iv)) == bytes(iv + hex))
        #expect(try cipher.decrypt(bytes(iv + hex)) == Array(plaintext.utf8))
    }

    @Test func desIgnoresParityBits() throws {
        let cipher = try PayloadCipher(.des, key: bytes("5276686775203130"))
        #expect(try cipher.encrypt(Array("example.com".utf8)) == bytes("10f08442428622aa6d3d41ae70a3697a"))
    }

    @Test func oneCipherServesManyMessages() throws {
        let des = try PayloadCipher(.des, key: Array(Self.desKey.utf8))
        for (key, plaintext, hex) in Self.des where key == Self.desKey {
            #expect(try des.encrypt(Array(plaintext.utf8)) == bytes(hex))
            #expect(throws: CryptographyError.badPadding) { try des.decrypt([UInt8](repeating: 7, count: 16)) }
            #expect(try des.decrypt(bytes(hex)) == Array(plaintext.utf8))
        }
        let aes = try PayloadCipher(.aes, key: Array(Self.aesKey.utf8))
        for (plaintext, iv, hex) in Self.aes {
            #expect(try aes.encrypt(Array(plaintext.utf8), iv: bytes(iv)) == bytes(iv + hex))
            #expect(throws: CryptographyError.badPadding) { try aes.decrypt([UInt8](repeating: 7, count: 32)) }
            #expect(try aes.decrypt(bytes(iv + hex)) == Array(plaintext.utf8))
        }
    }

    @Test func everyAESMessageHasAFreshIV() throws {
        let cipher = try PayloadCipher(.aes, key: Array(Self.aesKey.utf8))
        let payloads = try (0..<100).map { _ in try cipher.encrypt(Array("example.com".utf8)) }
        #expect(Set(payloads.map { $0.prefix(16) }).count == 100)
        for payload in payloads {
            #expect(payload.count == 32)
            #expect(try cipher.decrypt(payload) == Array("example.com".utf8))
        }
    }

    @Test func everyLengthComesBack() throws {
        for (algorithm, key) in [(PayloadCipher.Algorithm.des, Self.desKey), (.aes, Self.aesKey)] {
            let cipher = try PayloadCipher(algorithm, key: Array(key.utf8))
            for length in Array(0...130) + [PayloadCipher.maximumLength - 64] {
                let plaintext = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) }
                #expect(try cipher.decrypt(cipher.encrypt(plaintext)) == plaintext)
            }
        }
    }

    @Test func aWrongKeyIsAnError() throws {
        let des = try PayloadCipher(.des, key: Array("Swift!99".utf8))
        #expect(throws: CryptographyError.badPadding) {
            try des.decrypt(bytes("b9a896128400c10c5600a351f56276ad"))
        }
        let aes = try PayloadCipher(.aes, key: Array("Swift-HTTPDNS-17".utf8))
        #expect(throws: CryptographyError.badPadding) {
            try aes.decrypt(bytes(Self.iv1 + "beb0f5b32e275ea7e0a124a03fe8885c"))
        }
    }

    @Test func everyTruncationIsAnError() throws {
        let des = try PayloadCipher(.des, key: Array(Self.desKey.utf8))
        let aes = try PayloadCipher(.aes, key: Array(Self.aesKey.utf8))
        for (cipher, block, payload) in [
            (des, 8, bytes(Self.des[16].hex)), (aes, 16, bytes(Self.iv2 + Self.aes[10].hex)),
        ] {
            for length in 0..<payload.count {
                let whole = length.isMultiple(of: block) && length >= (block == 16 ? 32 : 8)
                #expect(throws: whole ? CryptographyError.badPadding : .payloadLength(length)) {
                    try cipher.decrypt(Array(payload.prefix(length)))
                }
            }
        }
    }

    @Test func lengthsAreChecked() throws {
        #expect(throws: CryptographyError.keyLength(10, wanted: 8)) {
            try PayloadCipher(.des, key: Array("dnspodpass".utf8))
        }
        #expect(throws: CryptographyError.keyLength(0, wanted: 16)) { try PayloadCipher(.aes, key: []) }
        let cipher = try PayloadCipher(.aes, key: Array(Self.aesKey.utf8))
        let long = [UInt8](repeating: 0, count: PayloadCipher.maximumLength + 16)
        #expect(throws: CryptographyError.tooLong(long.count)) { try cipher.encrypt(long) }
        #expect(throws: CryptographyError.tooLong(long.count)) { try cipher.decrypt(long) }
    }

    @Test func errorsSayNothingOfTheKey() {
        do {
            _ = try PayloadCipher(.des, key: Array("geheim".utf8))
            Issue.record("a key of six bytes was taken")
        } catch {
            #expect("\(error)" == "the key has 6 bytes, 8 are needed")
        }
    }

    @Test func randomBytesDiffer() {
        #expect(randomBytes(0).isEmpty)
        #expect(randomBytes(16).count == 16)
        #expect(randomBytes(16) != randomBytes(16))
        #expect(Set(randomBytes(4096)).count > 200)
    }
}

/// Bytes from hexadecimal text.
func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.compactMap(\.hexDigitValue)
    precondition(digits.count == hex.count && digits.count.isMultiple(of: 2))
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

/// The same from and to arrays, since a span cannot leave the expression that makes it.
extension PayloadCipher {
    func encrypt(_ plaintext: [UInt8]) throws(CryptographyError) -> [UInt8] { try encrypt(plaintext.span) }
    func encrypt(_ plaintext: [UInt8], iv: [UInt8]) throws(CryptographyError) -> [UInt8] {
        try encrypt(plaintext.span, iv: iv[...])
    }
    func decrypt(_ payload: [UInt8]) throws(CryptographyError) -> [UInt8] { try decrypt(payload.span) }
}
