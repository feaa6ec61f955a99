import Base
import DNSWire
import Names
import Testing

@Suite struct DomainPatternTests {
    @Test(
        arguments: [
            ("corp.example", "corp.example"), ("Corp.EXAMPLE.", "corp.example"), ("*.corp.example", "*.corp.example"),
            ("*.Corp.example.", "*.corp.example"), (".", "."), ("", ""), ("com", "com"),
            ("_ldap._tcp.corp.example", nil),
            ("xn--fiqs8s", nil), ("10.0.0.0/8", nil), ("10.20.0.0/16", nil), ("172.16.0.0/12", nil),
            ("10.128.0.0/9", nil),
            ("0.0.0.0/0", nil), ("0.0.0.0/1", nil), ("192.0.2.1/32", nil), ("192.0.2.254/31", nil), ("::/0", nil),
            ("8000::/1", nil), ("fc00::/7", nil), ("fd12:3456::/32", nil), ("2001:db8::1/128", nil),
            ("2001:db8::/127", nil),
            ("2001:DB8::/61", "2001:db8::/61"), ("1.example", nil), ("3com", nil),
        ] as [(String, String?)])
    func isShownAsItIsWritten(_ row: (text: String, shown: String?)) throws {
        let pattern = try #require(DomainPattern(row.text))
        #expect(pattern.description == row.shown ?? row.text)
        #expect(DomainPattern(pattern.description) == pattern)
    }

    @Test func kinds() {
        #expect(DomainPattern("a.b.") == .subtree(Name("a.b")!))
        #expect(DomainPattern(".") == .subtree(.root))
        #expect(DomainPattern("*.b") == .below(Name("b")!))
        #expect(DomainPattern("") == .singleLabels)
        #expect(DomainPattern("fd00::/8") == .network(Network("fd00::/8")!))
        #expect(DomainPattern("a.b"[...]) == .subtree(Name("a.b")!))
    }

    @Test(arguments: [
        "..", ".a", "a..b", "a..", "*", "*.", "*..", "*a.b", "a.*.b", "a.*", "*.*.a", "**.a", "*.10.0.0.0/8", "a b",
        " a", "a ", "a,b",
        "a#", "a/b", "/", "/8", "a/8", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08", "10.0.0.0/-1", "10/8",
        "10.0.0.0/8/8", "10.0.0.0/8.", "010.0.0.0/8", "10.0.0.0", "10.0.0.0.", "*.10.0.0.1", "10.0.0", "1", "a.1",
        "fd00::1/8", "fd00::", "::/129", "fe80::%eth0/64", "[fd00::]/8", "a\\.b", "a\\046b", "\"\"",
        "\u{0}", "a\n",
        "http://a.example/", "||a.example^", "server=/a/", "a:53",
    ])
    func isNoPattern(_ text: String) {
        #expect(DomainPattern(text) == nil)
    }

    @Test func lengthsAtTheirBounds() {
        let label = String(repeating: "a", count: 63)
        #expect(DomainPattern(label) != nil)
        #expect(DomainPattern(label + "a") == nil)
        #expect(DomainPattern("*." + label + "a.b") == nil)
        #expect(DomainPattern("b." + label + "a") == nil)
        let longest = "\(label).\(label).\(label).\(String(repeating: "b", count: 61))"
        #expect(DomainPattern(longest) == .subtree(Name(longest)!))
        #expect(DomainPattern(longest + ".") == .subtree(Name(longest)!))
        #expect(DomainPattern("*." + longest) == .below(Name(longest)!))
        #expect(DomainPattern(longest + "b") == nil)
        #expect(DomainPattern(longest + "b.") == nil)
        let most = Array(repeating: "a", count: 127).joined(separator: ".")
        #expect(DomainPattern(most) == .subtree(Name(most)!))
        #expect(DomainPattern(most + ".a") == nil)
    }

    /// What a list holds is what was put into it.
    @Test func listsKeepPatterns() {
        let texts = [
            "a.example", "*.a.example", ".", "", "10.0.0.0/8", "10.0.0.0/9", "fd00::/8", "fe80::/10", "0.0.0.0/0",
            "::/0",
        ]
        let patterns = texts.map { DomainPattern($0)! }
        let list = DomainList(patterns)
        #expect(list.patterns == patterns)
        #expect(list.count == patterns.count)
        #expect(DomainList([DomainPattern.below(.root)]).patterns == [.below(.root)])
    }

    @Test func listsKeepEveryNetwork() {
        for address in [
            "10.171.205.239", "0.0.0.0", "255.255.255.255", "fdab:cdef:1234:5678:9abc:def0:1234:5678", "::", "ffff::",
        ] {
            for length in 0...128 {
                guard let network = IPAddress(address).flatMap({ masked($0, length) }) else { continue }
                #expect(DomainList([.network(network)]).patterns == [.network(network)], "\(network)")
            }
        }
    }

    private func masked(_ address: IPAddress, _ length: Int) -> Network? {
        var octets = address.octets
        guard length <= 8 * octets.count else { return nil }
        for bit in length..<8 * octets.count { octets[bit / 8] &= ~(0x80 >> UInt8(bit % 8)) }
        return IPAddress(bytes: octets.span).flatMap { Network($0, prefixLength: length) }
    }
}
