/// Texts from outside, such as a resolver's reasons or lines of files, must not give commands to a user's terminal.
extension Unicode.Scalar {
    /// Whether a terminal shows the character in the order of the text. False for control characters (C0, DEL, and C1,
    /// whose U+009B begins a command as ESC [ does), for line separators other than these, and for characters that
    /// change the direction of writing (Unicode Standard Annex #9, §2).
    package var isPlain: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: false
        default: true
        }
    }
}

extension String {
    /// The text with a blank for each character that is not plain.
    /// - Parameter lines: Whether line ends stay, for a text whose lines the program itself has made.
    package func plain(lines: Bool = false) -> String {
        guard !unicodeScalars.allSatisfy(\.isPlain) else { return self }
        return String(UnicodeScalarView(unicodeScalars.map { $0.isPlain || lines && $0 == "\n" ? $0 : " " }))
    }
}

/// `1 answer`, `2 answers`.
package func counted(_ number: some BinaryInteger, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
}
