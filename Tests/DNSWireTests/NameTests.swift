import Base
import DNSWire
import Testing

struct NameTests {
    // python3 -c 'import dns.name; print(dns.name.from_text("WWW.Example.com").to_wire().lower().hex())'
    @Test func keepsTheWireFormInLowerCase() throws {
        let name = try #require(Name("WWW.Example.com"))
        #expect(name.wire == hex("03777777076578616d706c6503636f6d00"))
        #expect(name == Name("www.example.COM."))
        #expect(name.hashValue == Name("www.example.COM.")?.hashValue)
        #expect(name.labelCount == 3)
        #expect(name.description == "www.example.com")
    }

    @Test func rootIsADot() throws {
        #expect(Name(".") == .root)
        #expect(Name.root.wire == [0])
        #expect(Name.root.description == ".")
        #expect(Name.root.labelCount == 0)
        #expect(!Name.root.isHostname)
    }

    // python3 -c 'import dns.name
    // for t in [r"a\.b.c", r"a\\b", r"\000\255\032", r"\@\(x\)\;\$\""]:
    //     n = dns.name.from_text(t); print(n.to_wire().hex(), n.to_text(True))'
    @Test(arguments: [
        (#"a\.b.c"#, "03612e62016300", #"a\.b.c"#),
        (#"a\\b"#, "03615c6200", #"a\\b"#),
        (#"\000\255\032"#, "0300ff2000", #"\000\255\032"#),
        (#"\@\(x\)\;\$\""#, "0740287829 3b242200", #"\@\(x\)\;\$\""#),
        (#"\065\x"#, "02617800", "ax"),
    ])
    func readsAndWritesEscapes(text: String, wire: String, shown: String) throws {
        let name = try #require(Name(text))
        #expect(name.wire == hex(wire))
        #expect(name.description == shown)
        #expect(Name(name.description) == name)
    }

    @Test(arguments: [
        "", "..", ".a", "a..b", "a b", "é.example", "a\\", "a\\1", "a\\12", "a\\256", "a\\1x2", "a\u{7F}", "a\tb",
        "a\\\n",
    ])
    func refusesWhatIsNoName(text: String) {
        #expect(Name(text) == nil)
    }

    @Test func labelsHave63OctetsAtMost() {
        #expect(Name(String(repeating: "a", count: 63))?.wire.count == 65)
        #expect(Name(String(repeating: "a", count: 64)) == nil)
    }

    @Test func namesHave255OctetsAtMost() throws {
        let prefix = [63, 63, 63].map { String(repeating: "a", count: $0) }.joined(separator: ".")
        let longest = try #require(Name(prefix + "." + String(repeating: "b", count: 61)))
        #expect(longest.wire.count == 255)
        #expect(Name(longest.description + ".") == longest)
        #expect(Name(prefix + "." + String(repeating: "b", count: 62)) == nil)
        #expect(Name(prefix + "." + String(repeating: "b", count: 61) + ".c") == nil)
        #expect(Name(Array(repeating: "a", count: 127).joined(separator: "."))?.labelCount == 127)
        #expect(Name(Array(repeating: "a", count: 128).joined(separator: ".")) == nil)
    }

    @Test(arguments: [
        ("www.example.com", "example.com", true), ("example.com", "example.com", true), ("example.com", ".", true),
        (".", ".", true), ("notexample.com", "example.com", false), ("com", "example.com", false),
        (".", "com", false), ("example.com.evil", "example.com", false), (#"x\.example.com"#, "example.com", false),
        // The octets of "com." stand at the end, but inside a label.
        (#"a\003com"#, "com", false), ("WWW.EXAMPLE.com", "Example.Com", true),
    ])
    func isWithinGoesByLabels(name: String, parent: String, expected: Bool) throws {
        #expect(try #require(Name(name)).isWithin(#require(Name(parent))) == expected)
    }

    @Test(arguments: [
        ("www.example.com", true), ("_dns.resolver-1.arpa", true), ("xn--bcher-kva.example", true), ("a", true),
        ("a,b.example", false), (#"a\;b.example"#, false), ("a|b.example", false), (#"a\.b.example"#, false),
        (#"\000.example"#, false), ("*.example", false), (#"\255"#, false),
    ])
    func hostnamesHaveOnlyPlainOctets(name: String, expected: Bool) throws {
        #expect(try #require(Name(name)).isHostname == expected)
    }

    @Test func everyOctetIsPlainOrNot() throws {
        for octet in UInt8.min...UInt8.max {
            let name = Name(wire: [1, octet, 0].span, at: 0, length: 3)
            let scalar = Character(Unicode.Scalar(octet))
            let isPlain = octet < 0x80 && (scalar.isLetter || scalar.isNumber || scalar == "-" || scalar == "_")
            #expect(name.isHostname == isPlain, "octet \(octet)")
            #expect(Name(name.description) == name, "octet \(octet)")
            #expect(name.wire[1] == (octet >= 0x41 && octet <= 0x5A ? octet + 0x20 : octet), "octet \(octet)")
        }
    }

    // python3 -c 'import dns.reversename
    // for a in ["192.0.2.1", "0.0.0.0", "255.10.0.7", "2001:db8::567:89ab", "::", "::ffff:1.2.3.4"]: print(a, dns.reversename.from_address(a))'
    @Test(arguments: [
        ("192.0.2.1", "1.2.0.192.in-addr.arpa"), ("0.0.0.0", "0.0.0.0.in-addr.arpa"),
        ("255.10.0.7", "7.0.10.255.in-addr.arpa"),
        ("2001:db8::567:89ab", "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"),
        ("::", "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa"),
    ])
    func reverseNames(address: String, name: String) throws {
        let address = try #require(IPAddress(address))
        #expect(Name.reverse(of: address).description == name)
    }
}

struct CodeTests {
    // python3 -c 'import dns.rdatatype as t
    // for n in "A NS CNAME SOA PTR HINFO MX TXT AAAA SRV NAPTR DNAME OPT DS RRSIG NSEC DNSKEY SVCB HTTPS TSIG IXFR AXFR ANY CAA".split(): print(n, int(t.from_text(n)))'
    @Test(arguments: [
        ("A", 1), ("NS", 2), ("CNAME", 5), ("SOA", 6), ("PTR", 12), ("HINFO", 13), ("MX", 15), ("TXT", 16),
        ("AAAA", 28),
        ("SRV", 33), ("NAPTR", 35), ("DNAME", 39), ("OPT", 41), ("DS", 43), ("RRSIG", 46), ("NSEC", 47), ("DNSKEY", 48),
        ("SVCB", 64), ("HTTPS", 65), ("TSIG", 250), ("IXFR", 251), ("AXFR", 252), ("ANY", 255), ("CAA", 257),
        ("TYPE65280", 65280),
    ])
    func typesHaveMnemonics(text: String, value: Int) {
        let type = RecordType(rawValue: UInt16(value))
        #expect(type.description == text)
        #expect(RecordType(parsing: text) == type)
        #expect(RecordType(parsing: text.lowercased()) == type)
        #expect(RecordType(parsing: "TYPE\(value)") == type)
    }

    @Test(arguments: ["", "TYPE", "TYPE65536", "TYPE-1", "TYPE+1", "TYPE1x", "AA", "42"])
    func otherWordsAreNoTypes(text: String) {
        #expect(RecordType(parsing: text) == nil)
    }

    @Test func codesReadAsDigPrintsThem() {
        #expect(
            (0...6).map { ResponseCode(rawValue: $0).description } == [
                "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN",
            ])
        #expect("\(ResponseCode.badVers) \(ResponseCode.badCookie)" == "BADVERS BADCOOKIE")
        #expect("\(RecordClass.in) \(RecordClass(rawValue: 3)) \(RecordClass(rawValue: 5))" == "IN CH CLASS5")
        #expect(ExtendedError.staleAnswer.rawValue == 3 && ExtendedError.networkError.rawValue == 23)
    }
}
