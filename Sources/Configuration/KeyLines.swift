/// On which line of a TOML text each section and key stands: the parser of TOMLKit does not say.
///
/// It knows just enough TOML to skip values; on text that is not TOML it finds what it can. Keys in inline tables are
/// not looked for. It also finds the few places where that parser (toml++ 3.4.0, in release builds too) does not report
/// an error but fails an assertion or runs out of stack: a section header that does not begin with a name, `}` where a
/// list wants an item, dates, which no key takes, with a wrong time behind them, and keys of thousands of names.
struct KeyLines {
    struct Place: Equatable {
        /// `section`, or `section.key`.
        let path: String
        /// Counted from 1.
        let line: Int
        let isHeader: Bool
    }

    /// In the order of the text, up to the hazard if there is one.
    private(set) var places: [Place] = []
    /// The first place on which the parser would stop the whole process, so that it must not see the text.
    private(set) var hazard: (line: Int, key: String, message: String)?
    /// Names in one key, `a.b.c`. The parser makes a table of each, and takes them apart again by recursion; ours have
    /// three at most.
    private static let nameLimit = 8

    /// By path of a list that is not all on its key's line: the line of each of its texts.
    private(set) var itemLines: [String: [Int]] = [:]

    private let text: [UInt8]
    private var index = 0
    private var line = 1
    /// By path: the line of the first place there or under it.
    private var firstLines: [String: Int] = [:]
    /// Dots since the last item or key of the value began.
    private var dotCount = 0

    init(_ contents: String) {
        text = Array(contents.utf8)
        let byteOrderMark = Array("\u{FEFF}".utf8)
        if text.starts(with: byteOrderMark) { index = byteOrderMark.count }
        scan()
    }

    /// The line of a section or key; of what contains it, if it was not found itself.
    func line(of path: String) -> Int {
        if let line = firstLines[path] { return line }
        guard let dot = path.lastIndex(of: ".") else { return 1 }
        return line(of: String(path[..<dot]))
    }

    /// The last section or key that begins at or before a line.
    func place(at line: Int) -> Place? { places.last { $0.line <= line } }

    private mutating func scan() {
        var section = ""
        while index < text.count, hazard == nil {
            switch text[index] {
            case UInt8(ascii: "\n"):
                line += 1
                index += 1
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"):
                index += 1
            case UInt8(ascii: "["):
                section = header()
                record(section, isHeader: true)
                skipLine()
            default:
                let start = index
                let name = key()
                guard index > start, index < text.count, text[index] == UInt8(ascii: "=") else {
                    skipLine()
                    continue
                }
                record(section.isEmpty ? name : section + "." + name, isHeader: false)
                skipValue()
            }
        }
    }

    private mutating func record(_ path: String, isHeader: Bool) {
        places.append(Place(path: path, line: line, isHeader: isHeader))
        var path = path[...]
        while firstLines[String(path)] == nil {
            firstLines[String(path)] = line
            guard let dot = path.lastIndex(of: ".") else { return }
            path = path[..<dot]
        }
    }

    /// Reads `[name` or `[[name`.
    private mutating func header() -> String {
        index += 1
        _ = consume(UInt8(ascii: "["))
        skipSpace()
        if index < text.count, text[index] != UInt8(ascii: "]"), !isBare(text[index]), !isQuote(text[index]) {
            report("syntax", "a section without a name is not right; give a section such as [listen]")
        }
        return key()
    }

    /// Reads a bare, quoted or dotted key and the space behind it.
    private mutating func key() -> String {
        var parts: [String] = []
        repeat {
            skipSpace()
            parts.append(keyPart())
            skipSpace()
            if parts.count > Self.nameLimit { reportNames("syntax") }
        } while hazard == nil && consume(UInt8(ascii: "."))
        return parts.joined(separator: ".")
    }

    private mutating func keyPart() -> String {
        let start = index
        if index < text.count, isQuote(text[index]) {
            skipString()
            return String(decoding: text[start..<index].dropFirst().dropLast(), as: UTF8.self)
        }
        while index < text.count, isBare(text[index]) { index += 1 }
        return String(decoding: text[start..<index], as: UTF8.self)
    }

    private func isBare(_ octet: UInt8) -> Bool {
        switch octet {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    private func isQuote(_ octet: UInt8) -> Bool { octet == UInt8(ascii: "\"") || octet == UInt8(ascii: "'") }

    /// Skips to the end of the value that begins here, which may be lines further down.
    private mutating func skipValue() {
        var open: [UInt8] = []
        var items: [Int] = []
        let first = line
        dotCount = 0
        defer { if line > first, !items.isEmpty, let path = places.last?.path { itemLines[path] = items } }
        while index < text.count, hazard == nil {
            switch text[index] {
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                if open == [UInt8(ascii: "[")] { items.append(line) }
                skipString()
            case UInt8(ascii: "#"):
                skipLine()
            case UInt8(ascii: "\n"):
                if open.isEmpty { return }
                line += 1
                index += 1
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                open.append(text[index])
                dotCount = 0
                index += 1
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                if text[index] == UInt8(ascii: "}"), open.last == UInt8(ascii: "[") {
                    report(places.last?.path ?? "syntax", "\"}\" is not right in a list; close it with \"]\"")
                }
                _ = open.popLast()
                index += 1
            case UInt8(ascii: ","), UInt8(ascii: "="):
                dotCount = 0
                index += 1
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"):
                index += 1
            default:
                skipWord()
            }
        }
    }

    /// Skips a value, or a key in an inline table, that is not in quotes.
    private mutating func skipWord() {
        let startsWithDigit = text[index] >= UInt8(ascii: "0") && text[index] <= UInt8(ascii: "9")
        while index < text.count {
            switch text[index] {
            case UInt8(ascii: "\n"), UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: ","),
                UInt8(ascii: "]"), UInt8(ascii: "}"), UInt8(ascii: "#"), UInt8(ascii: "\""), UInt8(ascii: "'"):
                return
            case UInt8(ascii: "=") where !startsWithDigit:
                return
            case UInt8(ascii: "-") where startsWithDigit && text[index - 1] | 0x20 != UInt8(ascii: "e"):
                report(places.last?.path ?? "syntax", "a date or time is not right; no key takes one")
            case UInt8(ascii: "."):
                dotCount += 1
                if dotCount >= Self.nameLimit { reportNames(places.last?.path ?? "syntax") }
            default: break
            }
            index += 1
        }
    }

    private mutating func reportNames(_ key: String) {
        report(key, "more than \(Self.nameLimit) names between dots are not right; give a key such as listen.workers")
    }

    private mutating func report(_ key: String, _ message: String) {
        if hazard == nil { hazard = (line, key, message) }
    }

    /// Skips a string of any of the four kinds; one of the single-line kinds ends with its line at the latest.
    private mutating func skipString() {
        let quote = text[index]
        let isMultiline = text[index...].starts(with: [quote, quote, quote])
        index += isMultiline ? 3 : 1
        while index < text.count {
            if text[index] == UInt8(ascii: "\n") {
                guard isMultiline else { return }
                line += 1
            } else if text[index] == UInt8(ascii: "\\"), quote == UInt8(ascii: "\""), index + 1 < text.count,
                text[index + 1] != UInt8(ascii: "\n")
            {
                index += 1
            } else if text[index] == quote, !isMultiline || text[index...].starts(with: [quote, quote, quote]) {
                index += isMultiline ? 3 : 1
                return
            }
            index += 1
        }
    }

    /// Skips what is left of the line, but not its end.
    private mutating func skipLine() {
        while index < text.count, text[index] != UInt8(ascii: "\n") { index += 1 }
    }

    private mutating func skipSpace() {
        while index < text.count, text[index] == UInt8(ascii: " ") || text[index] == UInt8(ascii: "\t") { index += 1 }
    }

    private mutating func consume(_ octet: UInt8) -> Bool {
        guard index < text.count, text[index] == octet else { return false }
        index += 1
        return true
    }
}
