import Testing
import Transport

@Suite struct TerminalTextTests {
    @Test(
        "lines are broken between words",
        arguments: [
            ("short", "short"), ("", ""), ("a\n\nb\n", "a\n\nb\n"),
            ("one two three four five six", "one two three four\n  five six"),
            ("    one two three four five", "    one two three\n      four five"),
            ("exactly twenty lettrs", "exactly twenty\n  lettrs"), ("exactly twenty letts", "exactly twenty letts"),
            ("https://dns.example.net/dns-query answers", "https://dns.example.net/dns-query\n  answers"),
            ("see https://dns.example.net/dns-query", "see\n  https://dns.example.net/dns-query"),
            ("columns   stay     below each other", "columns   stay\n  below each other"),
            ("a lookup takes some 21 ms, no more", "a lookup takes some\n  21 ms, no more"),
            ("ends with spaces         ", "ends with spaces"),
        ])
    func wraps(_ text: String, _ expected: String) {
        #expect(TerminalText.wrapped(text, columns: 20) == expected)
    }

    @Test func coloursTakeNoRoom() {
        let text = "\u{1B}[31mSERVFAIL\u{1B}[0m \u{1B}[2m12 letters\u{1B}[0m"
        #expect(TerminalText.wrapped(text, columns: 20) == text)
        #expect(TerminalText.wrapped(text + " x", columns: 20) == text + "\n  x")
    }

    @Test func nothingIsLostAndNothingIsTooWide() {
        let words = (1...300).map { String(repeating: "x", count: $0 * 7 % 19 + 1) }
        for columns in [20, 21, 40, 80, 1000] {
            for indent in ["", "  ", String(repeating: " ", count: 30)] {
                let lines = TerminalText.wrapped(indent + words.joined(separator: " "), columns: columns)
                    .split(separator: "\n")
                #expect(lines.flatMap { $0.split(separator: " ") } == words.map { Substring($0) })
                #expect(lines.dropFirst().allSatisfy { $0.count <= columns + 19 }, "\(columns)")
                if indent.count < 20 { #expect(lines.allSatisfy { $0.count <= max(columns, 23) }, "\(columns)") }
            }
        }
    }
}
