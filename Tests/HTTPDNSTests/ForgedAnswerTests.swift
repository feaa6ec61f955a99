import Base
import Cryptography
import DNSWire
import HTTP
import HTTPDNS
import Testing

/// What somebody on the path can make of encrypted answers without the key: neither mode protects the text from being
/// changed, so what cannot have been written by the service as it was asked is refused, and always in the same way.
@Suite struct ForgedAnswerTests {
    private static let www = "www.example.com"

    /// What the service never gives to `query=1&ttl=1`, in any mode.
    static let forms: [(asked: String, family: Families, body: String)] = [
        // Without its name a line answers any question.
        (www, .ipv4, "192.0.2.1;192.0.2.2,120|203.0.113.7"), (www, .ipv4, "192.0.2.1,60"), (www, .ipv4, "0"),
        (www, .ipv4, "0,60|203.0.113.7"), (www, .both, "192.0.2.1,120-2001:db8::1,60|203.0.113.7"),
        (www, .both, "0-0"), (www, .ipv4, "|203.0.113.7"),
        // Another name, alone and beside the one that was asked.
        (www, .ipv4, "other.example.com.:192.0.2.1,60|203.0.113.7"),
        (www, .ipv4, "www.example.com.:192.0.2.1,60\nother.example.com.:192.0.2.1,60"),
        (www, .ipv4, "other.example.com|203.0.113.7\nwww.example.com.:192.0.2.1,60"),
        // A name twice, with different content.
        (www, .ipv4, "www.example.com.:192.0.2.1,60\nwww.example.com.:192.0.2.2,60"),
        (www, .ipv4, "www.example.com.:192.0.2.1,60\nwww.example.com.:0"),
        // Something unreadable, which may be what a changed block decrypts to, beside what is readable.
        (www, .ipv4, "\u{1}\u{7f}$%&!\nwww.example.com.:192.0.2.1,60"),
        (www, .ipv4, "www.example.com.:192.0.2.1,60\nnonsense"), (www, .ipv4, "www.example.com.:192.0.2.1;x,60"),
        (www, .ipv4, "www.example.com.:192.0.2.1,6x"), (www, .ipv4, "www.example.com.:192.0.2.1,"),
        (www, .ipv4, "www.example.com.:192.0.2.1,-1"), (www, .ipv4, "www.example.com.:192.0.2.1,60|nonsense"),
        (www, .ipv4, "www.example.com.:192.0.2.1,60|203.0.113.7|x"), (www, .ipv4, "www.example.com.:192.0.2.1,60|"),
        (www, .ipv4, "www.example.com.:192.0.2.1,60\n\nwww.example.com.:192.0.2.1,60"),
        (www, .ipv4, "www.example.com.:192.0.2.1 ,60"), (www, .ipv4, "www.example.com.: 192.0.2.1,60"),
        // Addresses of another family, or none, or `0` among some.
        (www, .ipv4, "www.example.com.:192.0.2.1;2001:db8::1,60"), (www, .ipv4, "www.example.com.:2001:db8::1,60"),
        (www, .both, "www.example.com.:2001:db8::1,60-192.0.2.1,60"), (www, .ipv4, "www.example.com.:192.0.2.1;0,60"),
        (www, .ipv4, "www.example.com.:"), (www, .ipv4, "www.example.com.:,60"), (www, .both, "www.example.com.:-"),
        (www, .both, "www.example.com.:192.0.2.1,60-"), (www, .ipv4, "www.example.com.:192.0.2.1;;192.0.2.2,60"),
        (www, .ipv4, "www.example.com.:0;,60"), (www, .ipv4, "www.example.com.:0,x"),
        (www, .ipv4, "www.example.com.:00"),
        (www, .ipv4, "www.example.com.:192.0.2.1,60-2001:db8::1,60"),
        // The name with another end.
        (www, .ipv4, "www.example.com:192.0.2.1,60"), (www, .ipv4, "www.example.com..:192.0.2.1,60"),
        (www, .ipv4, "www.example.co.:192.0.2.1,60"), (www, .ipv4, "xwww.example.com.:192.0.2.1,60"),
    ]

    @Test(arguments: forms) func isRefused(asked: String, family: Families, body: String) throws {
        let https = try TencentAccount(.https(token: Secret(Array("1".utf8))))
        #expect(throws: ServiceFailure.self) {
            try https.parse(HTTPResponse(ok: body), names: names(asked), family: family)
        }
        for (account, cipher) in try encryptedAccounts() {
            let response = try HTTPResponse(encrypted: body, cipher)
            #expect(throws: ServiceFailure.undecryptable) {
                try account.parse(response, names: names(asked), family: family)
            }
        }
    }

    /// What only the modes refuse in which somebody may have changed the text.
    @Test(arguments: [
        // Shorter without a TTL, it fits where little can be written.
        "www.example.com.:192.0.2.1|203.0.113.7", "www.example.com.:192.0.2.1;192.0.2.2",
        // In which of its octets a changed bit goes unnoticed would tell letters of the name from the rest.
        "Www.example.com.:192.0.2.1,60|203.0.113.7", "wwW.example.com|203.0.113.7",
    ])
    func isRefusedIfEncrypted(body: String) throws {
        let https = try TencentAccount(.https(token: Secret(Array("1".utf8))))
        #expect(try https.parse(HTTPResponse(ok: body), names: names(Self.www), family: .ipv4).count == 1)
        for (account, cipher) in try encryptedAccounts() {
            let response = try HTTPResponse(encrypted: body, cipher)
            #expect(throws: ServiceFailure.undecryptable) {
                try account.parse(response, names: names(Self.www), family: .ipv4)
            }
        }
    }

    @Test func whatWasForgedIsNotBelievedForLong() throws {
        for (account, cipher) in try encryptedAccounts() {
            for (given, kept) in [("5", 5), ("600", 600), ("601", 600), ("99999999999999999999", 600)]
                as [(String, UInt32)]
            {
                let response = try HTTPResponse(encrypted: "www.example.com.:192.0.2.1,\(given)", cipher)
                #expect(
                    try account.parse(response, names: names(Self.www), family: .ipv4)[0].ipv4
                        == .addresses(addresses("192.0.2.1"), ttl: kept))
            }
        }
    }

    // MARK: Attacks, without the key

    /// An answer to `www.example.com`, as it goes over the wire.
    private func aesAnswer() throws -> [UInt8] {
        try PayloadCipher(.aes, key: aesKey).encrypt(
            Array("www.example.com.:192.0.2.1;192.0.2.2,120|203.0.113.7".utf8).span)
    }

    /// CBC: the first block's text is what it decrypts to, combined with the initialization vector, which is not
    /// protected. Who knows that text, and the name that was asked is enough, makes any other of it.
    private func changingFirstBlock(of payload: [UInt8], from known: String, to wanted: [UInt8]) -> [UInt8] {
        var payload = payload
        for (index, (old, new)) in zip(known.utf8, wanted).enumerated() { payload[index] ^= old ^ new }
        return payload
    }

    private func padded(_ text: String) -> [UInt8] {
        let missing = 16 - text.utf8.count
        return text.utf8 + [UInt8](repeating: UInt8(missing), count: missing)
    }

    /// Only the first block is kept, and says what the attacker likes: this fits in without the name.
    @Test(arguments: ["6.6.6.6,999999", "6.6.6.6", "0"]) func aNamelessLineInOneBlock(text: String) throws {
        let forged = changingFirstBlock(
            of: Array(try aesAnswer().prefix(32)), from: "www.example.com.", to: padded(text))
        try expectRefused(forged, by: TencentAccount(.aes(id: 1, key: Secret(aesKey))))
    }

    /// A block in the middle, of which nothing is known, is changed at will, and with it the text before to something
    /// random: that must not vanish in a line that is skipped, or where nobody looks at the client's address.
    @Test(arguments: [(16, "1,60|203.0.113.7"), (0, "a.example.:192.0")]) func aBlockThatIsSkipped(
        start: Int, known: String
    ) throws {
        let cipher = try PayloadCipher(.aes, key: aesKey)
        let text = "a.example.:192.0.2.1,60|203.0.113.7,\nwww.example.com.:192.0.2.9,60"
        var forged = try cipher.encrypt(Array(text.utf8).span)
        for (index, octet) in known.utf8.enumerated() where octet != UInt8(ascii: "|") { forged[start + index] ^= 0x80 }
        #expect(throws: ServiceFailure.undecryptable) {
            try TencentAccount(.aes(id: 1, key: Secret(aesKey))).parse(
                HTTPResponse(payload: forged), names: names("a.example", Self.www), family: .ipv4)
        }
    }

    /// ECB: blocks of answers seen before, in another order. Here the last address of one loses its beginning, and is
    /// dropped on the way to the TTL.
    @Test func blocksPutTogether() throws {
        let cipher = try PayloadCipher(.des, key: desKey)
        // |www.exam|ple.com.|:192.0.2|.1;192.0|.2.2,600|…
        let seen = try cipher.encrypt(Array("www.example.com.:192.0.2.1;192.0.2.2,600".utf8).span)
        for order in [[0, 1, 2, 3, 3, 4, 5], [0, 1, 2, 3, 2, 3, 4, 5]] {
            let forged = order.flatMap { seen[8 * $0..<8 * $0 + 8] }
            try expectRefused(forged, by: TencentAccount(.des(id: 1, key: Secret(desKey))))
        }
    }

    /// What no reader can mend: the answer of one name for another that differs in the first block alone. It is why aes
    /// proves nothing, and why what it brings is not kept for long.
    @Test func whatIsStillForged() throws {
        let forged = changingFirstBlock(
            of: try aesAnswer(), from: "www.example.com.", to: Array("pay.example.com.".utf8))
        #expect(
            try TencentAccount(.aes(id: 1, key: Secret(aesKey))).parse(
                HTTPResponse(payload: forged), names: names("pay.example.com"), family: .ipv4)[0].ipv4
                == .addresses(addresses("192.0.2.1", "192.0.2.2"), ttl: 120))
    }

    /// Changing one octet at a time tells nobody what the padding, or the text, was: an answer is taken, or it is refused
    /// in one way.
    @Test func refusalsAreAlike() throws {
        for (account, cipher) in try encryptedAccounts() {
            let payload = try cipher.encrypt(Array("www.example.com.:192.0.2.1,120|203.0.113.7".utf8).span)
            var bodies = (1..<payload.count).filter { $0 != 16 }.map { Array(payload.prefix($0)) }
            for index in payload.indices {
                for bit: UInt8 in [1, 0x20, 0x80] {
                    var changed = payload
                    changed[index] ^= bit
                    bodies.append(changed)
                }
            }
            var refused = 0
            for body in bodies {
                do throws(ServiceFailure) {
                    _ = try account.parse(HTTPResponse(payload: body), names: names(Self.www), family: .ipv4)
                } catch {
                    #expect(error == .undecryptable)
                    refused += 1
                }
            }
            #expect(refused > bodies.count / 2)
        }
    }

    private func expectRefused(_ payload: [UInt8], by account: TencentAccount) throws {
        #expect(throws: ServiceFailure.undecryptable) {
            try account.parse(HTTPResponse(payload: payload), names: names(Self.www), family: .ipv4)
        }
    }
}
