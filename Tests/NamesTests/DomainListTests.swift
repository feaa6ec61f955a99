import TestSupport
import Testing

@testable import Names

/// A file of patterns, one a line.
@Suite struct DomainListTests {
    private func read(_ text: String) throws(DomainListError) -> [String] {
        try DomainList(parsing: Array(text.utf8).span).patterns.map(\.description)
    }

    @Test func aPatternALine() throws {
        let text = """
            # what the office knows
            corp.example
            *.Partner.EXAMPLE.   # a comment
            \t 10.0.0.0/8\t

            fd12:3456::/32#another
            .
            ""
            last.example
            """
        #expect(
            try read(text) == [
                "corp.example", "*.partner.example", "10.0.0.0/8", "fd12:3456::/32", ".", "", "last.example",
            ])
    }

    @Test(
        arguments: [
            ("", []), ("\n\n", []), ("#", []), ("# a\r\n\r\n", []), ("a", ["a"]), ("a\n", ["a"]),
            ("a\r\nb\r\n", ["a", "b"]),
            ("\u{FEFF}a\nb", ["a", "b"]), ("\u{FEFF}", []), ("\u{FEFF}# a\nb", ["b"]), ("a\na\n", ["a", "a"]),
            ("a\n\u{20}\n", ["a"]), ("a\n\u{FEFF}b", ["a", "b"]), ("\u{FEFF}\u{FEFF}a", ["a"]),
            ("server=/a/*.b/192.0.2.53#53 # c\nlocal=/c/\n", ["a", "*.b", "c"]),
            ("address=/a/0.0.0.0\naddress=/b/#\naddress=/c/\naddress=/d/::\n", ["a", "b", "c", "d"]),
            ("Bücher.example\n*.ü\n", ["xn--bcher-kva.example", "*.xn--tda"]),
        ] as [(String, [String])])
    func forms(_ row: (text: String, patterns: [String])) throws {
        #expect(try read(row.text) == row.patterns)
    }

    @Test(
        arguments: [
            ("a\nb c\n", 2, "b c"), ("\n\n# a\r\n  .a  \r\n", 4, ".a"),
            ("a\n0.0.0.0 ads.example\n", 2, "0.0.0.0 ads.example"),
            ("a\u{0}b", 1, "a?b"), ("a\rb\n", 1, "a?b"), ("a\nb\u{FEFF}", 2, "b???"),
            ("a\naddress=/b/192.0.2.1", 2, "address=/b/192.0.2.1"), ("server=//192.0.2.1", 1, "server=//192.0.2.1"),
            ("ü b\n", 1, "?? b"), ("a{b", 1, "a{b"), ("a`b", 1, "a`b"), ("a[b", 1, "a[b"), ("a@b", 1, "a@b"),
            ("10.0.0.1/8", 1, "10.0.0.1/8"),
            ("||ads.example^\n", 1, "||ads.example^"), ("a\n\"b\"\n", 2, "\"b\""), ("-\n-.\n-\n\"\"\"", 4, "\"\"\""),
        ] as [(String, Int, String)])
    func theFirstThatIsNone(_ row: (text: String, line: Int, shown: String)) {
        #expect(throws: DomainListError.notAPattern(line: row.line, row.shown)) { try read(row.text) }
    }

    @Test func whatIsNoTextIsNotTold() throws {
        let octets: [UInt8] = Array("a\n".utf8) + [0xFF, 0xFE, 0x80] + [UInt8](repeating: 0x41, count: 5000)
        let error = #expect(throws: DomainListError.self) { try DomainList(parsing: octets.span) }
        guard case .notAPattern(2, let shown) = error else { throw error ?? .tooManyLines }
        #expect(shown.unicodeScalars.count <= 100)
        #expect(error?.description.contains("AAA") == false)
    }

    @Test func aPatternsLine() throws {
        let many = String(repeating: "#\n", count: 700)
        let text = "\(many)a\nb\n\n# c\nd\n\(many)10.0.0.0/9\n\"\"\nserver=/e/f/\ng\n\(many)"
        let list = try DomainList(parsing: Array(text.utf8).span)
        #expect(list.count == 8)
        var (offset, lines) = (0, [Int]())
        while let entry = list.entry(after: &offset) { lines.append(list.line(at: entry.offset)) }
        #expect(lines == [701, 702, 705, 1406, 1407, 1408, 1408, 1409])
    }

    /// Two octets a name more than its text, whatever is in between.
    @Test func theMemoryOfAFile() throws {
        let names = (0..<20_000).map { "host-\(100_000 + $0).example" }
        let text = "# a list\n" + names.map { "\($0) # a long comment\r\n" }.joined()
        let list = try DomainList(parsing: Array(text.utf8).span)
        let length = names.reduce(0) { $0 + $1.utf8.count + 3 }
        #expect(list.octets.count == length + 2)
        #expect(list.octets.capacity <= length + 4096)
    }

    @Test func boundsOfAFile() throws {
        var octets = [UInt8](repeating: UInt8(ascii: "\n"), count: DomainList.maximumLines)
        #expect(try DomainList(parsing: octets.span).count == 0)
        octets.append(UInt8(ascii: "a"))
        #expect(throws: DomainListError.tooManyLines) { try DomainList(parsing: octets.span) }
        // As long as may be, so that it is read.
        octets = [UInt8](repeating: UInt8(ascii: "\n"), count: DomainList.maximumOctets)
        #expect(throws: DomainListError.tooManyLines) { try DomainList(parsing: octets.span) }
        octets.append(UInt8(ascii: "\n"))
        #expect(throws: DomainListError.tooManyOctets) { try DomainList(parsing: octets.span) }
    }

    /// Against a reader by strings, one line after the other.
    @Test func itReadsAsLineByLine() {
        var chance = Chance.announced("itReadsAsLineByLine")
        let pieces = [
            "a", "B", "example", ".", "*", "*.", "#", "\n", "\n", "\r\n", " ", "\t", "/", "/8", "10.", "0",
            "10.0.0.0/8", "::/0", "\"\"", "-", "_",
            "\u{FEFF}", "a.b", "fd00::/8",
        ]
        for _ in 0..<3000 {
            let text = (0..<chance.below(12)).map { _ in pieces[chance.below(pieces.count)] }.joined()
            var (patterns, wrong) = ([DomainPattern](), nil as Int?)
            let lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
            for (number, line) in lines.enumerated() where wrong == nil {
                let kept = line.drop { $0 == "\u{FEFF}" }.prefix { $0 != "#" }.drop {
                    " \t\r".unicodeScalars.contains($0)
                }
                let trimmed = kept.reversed().drop { " \t\r".unicodeScalars.contains($0) }.reversed()
                var word = ""
                word.unicodeScalars.append(contentsOf: trimmed)
                if word.isEmpty { continue }
                if let pattern = word == "\"\"" ? .singleLabels : DomainPattern(word) {
                    patterns.append(pattern)
                } else {
                    wrong = number + 1
                }
            }
            do throws(DomainListError) {
                let list = try DomainList(parsing: Array(text.utf8).span)
                #expect(wrong == nil && list.patterns == patterns, "\(text.debugDescription)")
            } catch {
                #expect(error.line == wrong, "\(text.debugDescription)")
            }
        }
    }
}
