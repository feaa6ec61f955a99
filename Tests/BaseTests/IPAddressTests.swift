import Base
import TestSupport
import Testing

@Suite struct IPAddressTests {
    /// Texts near the borders of the grammar; glibc says which are addresses.
    static let oddTexts = [
        "", " ", ".", ":", "::", ":::", "::::", "0", "1", "1.2", "1.2.3", "1.2.3.4", "1.2.3.4.5", "1.2.3.4.",
        ".1.2.3.4",
        "1..2.3", "01.2.3.4", "1.2.3.04", "00.0.0.0", "0.0.0.0", "255.255.255.255", "256.1.1.1", "1.2.3.256",
        "1.2.3.999",
        "1.2.3.1000", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4\n", "+1.2.3.4", "-1.2.3.4", "0x1.2.3.4", "1.2.3.4/8",
        "1.2.3.4:53",
        "127.1", "2130706433", "1.2.3.٤", "１.2.3.4", "::1", "1::", ":1", "1:", "1:2", "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::3:4:5:6:7:8", "1:2:3:4:5:6:7:8::",
        "::1:2:3:4:5:6:7:8", "1:2:3:4::5:6:7:8", "1::2::3", "::1::", "1:::2", "1:2:::", ":::1", "::1:", ":1::2", "g::",
        "12345::", "00001::", "0001::", "ffff::", "FFFF::", "aBcD::eF", "::ffff:1.2.3.4", "::FFFF:1.2.3.4", "::1.2.3.4",
        "::1.2.3", "::1.2.3.4.5", "::1.2.3.04", "::1.2.3.256", "1.2.3.4::", "::1.2.3.4:5", "1:2:3:4:5:6:1.2.3.4",
        "1:2:3:4:5:6:7:1.2.3.4", "1:2:3:4:5:1.2.3.4", "1:2:3:4:5::1.2.3.4", "1:2:3:4:5:6::1.2.3.4",
        "1:2:3:4:5:6:1.2.3.4::",
        "::1:2:3:4:5:6:1.2.3.4", "64:ff9b::192.0.2.33", "fe80::1%eth0", "fe80::1%1", "[::1]", "::1/128", "::0x1",
        "::+1",
        "::-1", "::1 ", " ::1", "0:0:0:0:0:0:0:0", "0:0:0:0:0:0:0:1", "::0000:0001", "1:0:0:2:0:0:0:3", "::a.b.c.d",
        "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.2555",
        "0000:0000:0000:0000:0000:0000:0000:0000:0000", "1.2.3.4::1", "a.2.3.4", "1:a.2.3.4", "::.1.2.3", "::1.", "1.:",
    ]

    @Test("odd texts are read as glibc reads them", arguments: oddTexts)
    func oddText(_ text: String) {
        check(text)
    }

    @Test("random texts of the grammar's own letters are read as glibc reads them")
    func randomTexts() {
        var random = Chance.announced("IPAddressTests.randomTexts")
        let pieces = [
            "0", "1", "9", "25", "255", "256", "f", "ffff", "ab12", ".", ".", ".", ":", ":", ":", "::", "::", "%", " ",
        ]
        var accepted = 0
        for _ in 0..<200_000 {
            var text = ""
            for _ in 0..<Int.random(in: 1...16, using: &random) { text += pieces.randomElement(using: &random)! }
            if check(text) { accepted += 1 }
        }
        #expect(accepted > 100, "too few of the texts were addresses for the test to mean much")
    }

    @Test("addresses with one letter changed, added or lost are read as glibc reads them")
    func damagedTexts() {
        var random = Chance.announced("IPAddressTests.damagedTexts")
        let letters = Array("0123456789abcdefABCDEF..::::%/ x")
        for _ in 0..<100_000 {
            var text = Array(Judge.text(randomOctets(&random)))
            let index = Int.random(in: 0..<text.count, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: text[index] = letters.randomElement(using: &random)!
            case 1: text.insert(letters.randomElement(using: &random)!, at: index)
            case 2: text.remove(at: index)
            default: break
            }
            check(String(text))
        }
    }

    @Test("every address is written as glibc writes it, and read back the same")
    func description() throws {
        var random = Chance.announced("IPAddressTests.description")
        for _ in 0..<100_000 {
            let octets = randomOctets(&random)
            let address = try #require(addressFrom(octets: octets))
            #expect(IPAddress(address.description) == address)
            // RFC 5952 §5 keeps the dotted quad for well-known prefixes; glibc also writes ::/96 so.
            let isIPv4Compatible = octets.count == 16 && octets.prefix(12).allSatisfy { $0 == 0 }
            if !isIPv4Compatible { #expect(address.description == Judge.text(octets)) }
        }
    }

    // The examples of RFC 5952 §1–§5.
    @Test(
        "RFC 5952's examples",
        arguments: [
            ("2001:0db8::0001", "2001:db8::1"), ("2001:db8:0:0:0:0:2:1", "2001:db8::2:1"),
            ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"), ("2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
            ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"), ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
            ("2001:DB8:0:0:1::1", "2001:db8::1:0:0:1"), ("::FFFF:C000:0280", "::ffff:192.0.2.128"),
            ("0:0:0:0:0:0:0:0", "::"), ("0:0:0:0:0:0:0:1", "::1"), ("1:0:0:0:0:0:0:0", "1::"),
            ("::102:304", "::102:304"),
            ("::1.2.3.4", "::102:304"), ("0:0:0:1:0:0:0:0", "0:0:0:1::"), ("0:0:0:0:1:0:0:0", "::1:0:0:0"),
        ])
    func rfc5952(_ text: String, _ canonical: String) {
        #expect(IPAddress(text)?.description == canonical)
    }

    @Test("octets, bits and writing agree with what was read")
    func octets() throws {
        var random = Chance.announced("IPAddressTests.octets")
        for _ in 0..<10_000 {
            let octets = randomOctets(&random)
            let address = try #require(addressFrom(octets: octets))
            #expect(address.octets == octets)
            #expect(address.isIPv4 == (octets.count == 4))
            if !address.isIPv4 { #expect(IPAddress(v6: address.high, address.low) == address) }
            var packet = [UInt8](repeating: 0xEE, count: 20)
            var span = packet.mutableSpan
            #expect(address.write(into: &span, at: 2) == octets.count)
            #expect(packet == [0xEE, 0xEE] + octets + [UInt8](repeating: 0xEE, count: 18 - octets.count))
        }
        for count in 0...20 where count != 4 && count != 16 {
            #expect(addressFrom(octets: [UInt8](repeating: 1, count: count)) == nil)
        }
        #expect(IPAddress.v4(192, 0, 2, 33) == IPAddress("192.0.2.33"))
        #expect(IPAddress(v4: 0xC000_0221).description == "192.0.2.33")
        #expect(IPAddress(v6: 0x2001_0db8_0000_0000, 1).description == "2001:db8::1")
    }

    @Test("IPv4, its mapped and its compatible form are three addresses")
    func familiesDiffer() {
        let all = Set(["0.0.0.1", "::1", "::ffff:0.0.0.1"].compactMap { IPAddress($0) })
        #expect(all.count == 3)
    }

    @Test(
        "loopback and unspecified",
        arguments: [
            ("127.0.0.1", true, false), ("127.255.255.255", true, false), ("126.255.255.255", false, false),
            ("128.0.0.0", false, false), ("0.0.0.0", false, true), ("0.0.0.1", false, false), ("::", false, true),
            ("::1", true, false), ("::2", false, false), ("1::1", false, false), ("1::", false, false),
            ("::ffff:127.0.0.2", true, false), ("::ffff:0.0.0.0", false, true), ("::ffff:8.8.8.8", false, false),
            ("::127.0.0.1", false, false),
        ])
    func kinds(_ text: String, isLoopback: Bool, isUnspecified: Bool) throws {
        let address = try #require(IPAddress(text))
        #expect(address.isLoopback == isLoopback)
        #expect(address.isUnspecified == isUnspecified)
    }

    @Test("bytes that are no text are no address")
    func hostileBytes() {
        var random = Chance.announced("IPAddressTests.hostileBytes")
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            guard let address = addressFrom(parsing: bytes) else { continue }
            #expect(Judge.octets(String(decoding: bytes, as: UTF8.self)) == address.octets)
        }
        #expect(addressFrom(parsing: Array("1.2.3.4\0".utf8)) == nil)
        #expect(addressFrom(parsing: Array("::1\0".utf8)) == nil)
    }

    /// Compares both readers with glibc's and returns whether the text is an address.
    @discardableResult
    private func check(_ text: String) -> Bool {
        let expected = Judge.octets(text)
        let note: Comment = "\"\(text)\""
        if IPAddress(text)?.octets != expected { Issue.record(note) }
        if IPAddress("<\(text)>".dropFirst().dropLast())?.octets != expected { Issue.record(note) }
        if addressFrom(parsing: Array(text.utf8))?.octets != expected { Issue.record(note) }
        return expected != nil
    }

    /// Octets of an IPv4 or IPv6 address with many zero groups, so that `::` has something to choose from.
    private func randomOctets(_ random: inout Chance) -> [UInt8] {
        if Int.random(in: 0..<4, using: &random) == 0 {
            return (0..<4).map { _ in UInt8.random(in: 0...255, using: &random) }
        }
        if Int.random(in: 0..<8, using: &random) == 0 {
            return [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255]
                + (0..<4).map { _ in UInt8.random(in: 0...255, using: &random) }
        }
        return (0..<8).flatMap { _ -> [UInt8] in
            switch Int.random(in: 0..<4, using: &random) {
            case 0: [UInt8.random(in: 0...255, using: &random), UInt8.random(in: 0...255, using: &random)]
            case 1: [0, UInt8.random(in: 0...15, using: &random)]
            default: [0, 0]
            }
        }
    }
}
