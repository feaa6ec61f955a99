/// Foreign texts (a resolver's reasons, lines of files) for a person, to whose terminal they must not give commands.
extension Unicode.Scalar {
    /// Whether a terminal shows it in the order of the text: false for control characters (C0, DEL, and C1, whose
    /// U+009B begins a command as ESC [ does), for other ends of a line, and for characters that change the direction
    /// of writing (Unicode Standard Annex #9, §2).
    package var isPlain: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: false
        default: true
        }
    }
}

extension String {
    /// The text with a blank for each character that is not plain.
    /// - Parameter lines: Whether the ends of its lines stay, since the program has made them.
    package func plain(lines: Bool = false) -> String {
        guard !unicodeScalars.allSatisfy(\.isPlain) else { return self }
        return String(UnicodeScalarView(unicodeScalars.map { $0.isPlain || lines && $0 == "\n" ? $0 : " " }))
    }
}

/// `1 answer`, `2 answers`.
package func counted(_ number: some BinaryInteger, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
}
