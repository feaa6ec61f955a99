import Foundation
import Testing

@testable import Base

@Suite struct PlainTextTests {
    /// What a terminal takes for a command or for another direction, with a range's ends and the characters beside it.
    @Test(arguments: [
        (0x00, false), (0x07, false), (0x09, false), (0x0A, false), (0x1B, false), (0x1F, false), (0x20, true),
        (0x7E, true),
        (0x7F, false), (0x80, false), (0x85, false), (0x9B, false), (0x9F, false), (0xA0, true), (0xE9, true),
        (0x061C, false),
        (0x200D, true), (0x200E, false), (0x200F, false), (0x2010, true), (0x2027, true), (0x2028, false),
        (0x2029, false),
        (0x202A, false), (0x202E, false), (0x202F, true), (0x2065, true), (0x2066, false), (0x2069, false),
        (0x206A, true),
        (0x4E2D, true), (0xFFFD, true), (0x1F600, true),
    ])
    func characters(_ value: UInt32, isPlain: Bool) throws {
        let scalar = try #require(Unicode.Scalar(value))
        #expect(scalar.isPlain == isPlain)
        let text = "a\(Character(scalar))b"
        #expect(text.plain() == (isPlain ? text : "a b"))
        #expect(text.plain(lines: true) == (isPlain || value == 0x0A ? text : "a b"))
        // JSON keeps it, and writes it in letters.
        let json = JSON.quoted(text)
        let isPlainText = json.unicodeScalars.allSatisfy { $0.isPlain }
        #expect(isPlainText)
        #expect(try JSONDecoder().decode([String].self, from: Data("[\(json)]".utf8)) == [text])
    }

    /// A line's end of two characters is one `Character`.
    @Test func linesOfOthers() {
        #expect("a\r\nb".plain(lines: true) == "a \nb")
        #expect("\u{1B}[2Ja\u{8}\n\u{9B}31mb\u{202E}c".plain() == " [2Ja   31mb c")
    }
}
