import Base

/// The octets of a TOML text with the current index and line. Reads blanks, comments, names and strings.
struct TOMLText {
    private let file: String
    private let text: [UInt8]
    private var index = 0
    private(set) var line = 1
    /// The key being read, for errors; empty before its name is read.
    var path: [String] = []

    /// - Parameter file: The file's name in errors.
    init(file: String, _ contents: String) {
        (self.file, text) = (file, Array(contents.utf8))
        let byteOrderMark = Array("\u{FEFF}".utf8)
        if text.starts(with: byteOrderMark) { index = byteOrderMark.count }
    }

    // MARK: Strings

    /// Reads a string of any of the four kinds; in a key only the single-line kinds.
    mutating func string(isKey: Bool) throws(ConfigurationError) -> String {
        let (quote, first) = (text[index], line)
        let isLong = !isKey && text[index...].starts(with: [quote, quote, quote])
        index += isLong ? 3 : 1
        if isLong { _ = takeNewline() }
        var octets: [UInt8] = []
        while let octet {
            let start = index
            if octet == quote {
                // Up to two quotes may precede the closing three.
                let count = isLong ? text[index...].prefix(5).prefix { $0 == quote }.count : 1
                index += count
                if !isLong || count >= 3 {
                    octets += [UInt8](repeating: quote, count: isLong ? count - 3 : 0)
                    return String(decoding: octets, as: UTF8.self)
                }
                octets += text[start..<index]
            } else if octet == UInt8(ascii: "\\"), quote == UInt8(ascii: "\"") {
                try escape(&octets, isLong: isLong)
            } else if takeNewline() {
                guard isLong else { break }
                octets += text[start..<index]
            } else {
                try checkPrintable(octet)
                octets.append(octet)
                index += 1
            }
        }
        line = first
        throw error("not TOML; the text that begins here has no quote at its end")
    }

    private mutating func escape(_ octets: inout [UInt8], isLong: Bool) throws(ConfigurationError) {
        index += 1
        guard let octet else { return }
        switch octet {
        case UInt8(ascii: "b"): octets.append(0x08)
        case UInt8(ascii: "t"): octets.append(0x09)
        case UInt8(ascii: "n"): octets.append(0x0A)
        case UInt8(ascii: "f"): octets.append(0x0C)
        case UInt8(ascii: "r"): octets.append(0x0D)
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): octets.append(octet)
        case UInt8(ascii: "u"), UInt8(ascii: "U"):
            let digits = text[(index + 1)...].prefix(octet == UInt8(ascii: "u") ? 4 : 8).prefix {
                Hexadecimal.value($0) != nil
            }
            let value = digits.reduce(UInt32(0)) { $0 << 4 | UInt32(Hexadecimal.value($1) ?? 0) }
            guard digits.count == (octet == UInt8(ascii: "u") ? 4 : 8), let scalar = Unicode.Scalar(value) else {
                throw error("not TOML; give \\uXXXX or \\UXXXXXXXX with the number of a character")
            }
            // The kernel would take NUL as the end of a path.
            if value == 0 { throw error("a control character, with the number 0, is invalid in a text; remove it") }
            octets += Array(String(scalar).utf8)
            index += digits.count
        default:
            // A backslash at the end of a line joins the line with the next word.
            let start = index
            skipBlanks()
            guard isLong, takeNewline() else {
                index = start
                throw error("not TOML; give \"\\\\\" for a backslash, or the text in single quotes")
            }
            repeat { skipBlanks() } while takeNewline()
            return
        }
        index += 1
    }

    // MARK: Octets

    var isAtEnd: Bool { index == text.count }
    var isAtLineEnd: Bool { isAtEnd || text[index] == 0x0A || text[index...].starts(with: [0x0D, 0x0A]) }
    var isAtComment: Bool { octet == UInt8(ascii: "#") }
    var isAtQuote: Bool { octet == UInt8(ascii: "\"") || octet == UInt8(ascii: "'") }

    private var octet: UInt8? { index < text.count ? text[index] : nil }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard octet == UInt8(ascii: character) else { return false }
        index += 1
        return true
    }

    /// Takes the characters of a bare key (ASCII letters and digits, `-` and `_`) and those of `more`.
    mutating func takeWord(with more: String = "") -> String {
        let start = index
        while let octet,
            isDigit(octet) || isLowerLetter(lowercased(octet)) || "-_".utf8.contains(octet) || more.utf8.contains(octet)
        {
            index += 1
        }
        return String(decoding: text[start..<index], as: UTF8.self)
    }

    mutating func skipBlanks() {
        while octet == UInt8(ascii: " ") || octet == UInt8(ascii: "\t") { index += 1 }
    }

    /// Takes a line's end, LF or CR LF.
    private mutating func takeNewline() -> Bool {
        let end = text[index...].starts(with: [0x0D, 0x0A]) ? index + 1 : index
        guard end < text.count, text[end] == 0x0A else { return false }
        (index, line) = (end + 1, line + 1)
        return true
    }

    /// Skips a comment up to the line's end.
    private mutating func skipComment() throws(ConfigurationError) {
        guard octet == UInt8(ascii: "#") else { return }
        while let octet, !isAtLineEnd {
            try checkPrintable(octet)
            index += 1
        }
    }

    /// Skips the rest of this line, valid or not, and its end.
    mutating func skipLine() {
        while !isAtLineEnd { index += 1 }
        _ = takeNewline()
    }

    /// Skips blanks, comments and line ends, which are allowed between the items of a list.
    mutating func skipLines() throws(ConfigurationError) {
        repeat {
            skipBlanks()
            try skipComment()
        } while takeNewline()
    }

    /// Moves to the next line. Only a comment may be left on the current line.
    mutating func endLine() throws(ConfigurationError) {
        skipBlanks()
        try skipComment()
        if !takeNewline(), index < text.count {
            throw error("not TOML; give one key and its value on a line, or \"#\" before a comment")
        }
    }

    private func checkPrintable(_ octet: UInt8) throws(ConfigurationError) {
        guard octet >= 0x20 && octet != 0x7F || octet == 0x09 else {
            throw error("a control character, with the number \(octet), is invalid in a text; remove it")
        }
    }

    /// An error at the current line.
    func error(_ message: String) -> ConfigurationError {
        ConfigurationError(
            file: file, line: line, key: path.isEmpty ? "syntax" : path.joined(separator: "."), message: message)
    }
}
