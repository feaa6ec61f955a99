/// Text for a person at a terminal.
package enum TerminalText {
    /// Breaks lines that are wider than the terminal between words; a continuation is indented by two letters more than
    /// its line. A number stays with its unit. A word wider than the terminal stays whole, so that it can be copied.
    /// - Parameters:
    ///   - text: The text, in which colour sequences (ECMA-48 §8.3.117) count as zero width.
    ///   - columns: The width of the terminal, in letters.
    package static func wrapped(_ text: String, columns: Int) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { wrapped(line: $0, columns) }
            .joined(separator: "\n")
    }

    private static func wrapped(line: Substring, _ columns: Int) -> String {
        guard width(line) > columns else { return String(line) }
        let indent = line.prefix { $0 == " " }
        let hanging = String(repeating: " ", count: min(indent.count, columns / 3) + 2)
        var (result, at) = ("", 0)
        var rest = line[...]
        while !rest.isEmpty {
            let space = rest.prefix { $0 == " " }
            let word = self.word(rest.dropFirst(space.count))
            rest = rest[word.endIndex...]
            let wide = width(word)
            if result.isEmpty || at + space.count + wide <= columns {
                result += space + word
                at += space.count + wide
            } else if wide > 0 {
                result += "\n\(hanging)\(word)"
                at = hanging.count + wide
            }
        }
        return result
    }

    /// The first word of a text; if it is a number, with the unit after it.
    private static func word(_ text: Substring) -> Substring {
        let word = text.prefix { $0 != " " }
        guard word.last?.isNumber ?? false else { return word }
        let unit = text[word.endIndex...].dropFirst().prefix { $0 != " " }
        return units.contains(unit.filter { $0.isLetter || $0 == "%" }) ? text[..<unit.endIndex] : word
    }

    private static let units: Set = ["µs", "ms", "s", "min", "h", "d", "%", "B", "KB", "MB", "GB"]

    /// The width of a text on the terminal, in letters.
    private static func width(_ text: Substring) -> Int {
        var (count, isInSequence) = (0, false)
        for character in text {
            if isInSequence {
                isInSequence = character != "m"
            } else if character == "\u{1B}" {
                isInSequence = true
            } else {
                count += 1
            }
        }
        return count
    }
}
