import Base
import Cryptography
import DNSWire
import HTTP
import HTTPDNS
import Testing

@Suite struct EncryptedAnswerTests {
    private let www = names("www.example.com")
    private let iv = "f0e1d2c3b4a5968778695a4b3c2d1e0f"

    private func aes(_ body: String, _ names: [Name], _ family: Families) throws -> [NameAddresses] {
        try TencentAccount(.aes(id: 12345, key: Secret(aesKey))).parse(
            HTTPResponse(ok: body), names: names, family: family)
    }

    private func des(_ body: String, _ names: [Name], _ family: Families) throws -> [NameAddresses] {
        try TencentAccount(.des(id: 12345, key: Secret(desKey))).parse(
            HTTPResponse(ok: body), names: names, family: family)
    }

    private var wwwIPv4: [NameAddresses] {
        [
            NameAddresses(
                name: www[0], ipv4: .addresses(addresses("192.0.2.1", "192.0.2.2"), ttl: 120), ipv6: .notAsked)
        ]
    }

    /// `www.example.com.:192.0.2.1;192.0.2.2,120|203.0.113.7`
    private let desBody =
        "b9a896128400c10c262edfa949dd9e1590fee9f660550227c15404ead7c18a00ce073b42c33c8ddd66adc3a107c42cc9d7baf42beed711f5"
    private let aesBody =
        "71db44e2074562b56ed324b5a4986c70b0a852b5df6653459c0b98a64e313dc7d5bd8a59a7a0976c2cbcd0cabb9cfdd911144863add89565eb2850be825b2981"

    @Test func example5() throws {
        #expect(try aes(iv + aesBody, www, .ipv4) == wwwIPv4)
        #expect(try des(desBody, www, .ipv4) == wwwIPv4)
    }

    @Test func upperCaseAndWhiteSpaceAreTaken() throws {
        #expect(try aes(" \r\n" + (iv + aesBody).uppercased() + "\r\n", www, .ipv4) == wwwIPv4)
        #expect(try des("\t" + desBody.uppercased() + "\n", www, .ipv4) == wwwIPv4)
    }

    @Test func nothingInAnyForm() throws {
        let nothing = [NameAddresses(name: www[0], ipv4: .noRecord, ipv6: .notAsked)]
        for body in [
            "", "\n", iv, iv + "6741977608769254b611f592d0940267",
        ] {
            #expect(try aes(body, www, .ipv4) == nothing)
        }
        for body in ["", "d9abf7f615f4600f"] {
            #expect(try des(body, www, .ipv4) == nothing)
        }
    }

    /// `192.0.2.1;192.0.2.2`, the same with `,120`, and `0`: what the service says of a name without `query=1`.
    @Test func namelessAnswers() {
        for body in ["64c9a1dbd556d64c13312ffa51a525029e8fe0ee4751c0ec", "46524d1013c1dd57"] {
            #expect(throws: ServiceFailure.undecryptable) { try des(body, www, .ipv4) }
        }
        for body in [
            "3610ecd4d8f448c7a2a2555a7e65b22b99b7427c3719db9d09737bf671583c31", "43dfca5a0ade64b18aa5f101bd6e8cae",
        ] {
            #expect(throws: ServiceFailure.undecryptable) { try aes(iv + body, www, .ipv4) }
        }
    }

    @Test func whatCannotBeDecrypted() {
        for body in [
            "0", "00", "zz", iv.dropLast().description, iv + "00", iv + aesBody.dropLast(2),
            "www.example.com.:192.0.2.1,60", String(iv.dropLast(2)),
        ] {
            #expect(throws: ServiceFailure.undecryptable) { try aes(body, www, .ipv4) }
        }
        for body in ["0", "00", desBody.dropLast(2).description, "192.0.2.1"] {
            #expect(throws: ServiceFailure.undecryptable) { try des(body, www, .ipv4) }
        }
    }

    @Test func aWrongKeyIsNeverAnAnswer() throws {
        for last in UInt8.min...UInt8.max {
            var key = aesKey
            key[15] = last
            let account = try TencentAccount(.aes(id: 12345, key: Secret(key)))
            let response = HTTPResponse(ok: iv + aesBody)
            if last == aesKey[15] {
                #expect(try account.parse(response, names: www, family: .ipv4) == wwwIPv4)
            } else {
                #expect(throws: ServiceFailure.self) { try account.parse(response, names: www, family: .ipv4) }
            }
        }
    }

    @Test func everyTruncation() throws {
        for (account, body) in [
            (try TencentAccount(.aes(id: 1, key: Secret(aesKey))), iv + aesBody),
            (try TencentAccount(.des(id: 1, key: Secret(desKey))), desBody),
        ] {
            for length in 1..<body.count where length != 32 || body.count == desBody.count {
                let response = HTTPResponse(ok: String(body.prefix(length)))
                #expect(throws: ServiceFailure.self) { try account.parse(response, names: www, family: .ipv4) }
            }
        }
    }
}
