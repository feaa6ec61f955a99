import Base

/// Reads TOML 1.0, with the line of each key and of each list item.
///
/// The reader is strict, and limited to the TOML that settings use: tables, dotted keys, the four kinds of string,
/// integers, booleans, arrays and inline tables. Floats and dates are read as values that no key takes. Arrays of
/// tables (`[[NAME]]`) are refused. No message repeats a value, which may be a secret.
struct TOMLReader {
    /// A value, or the beginning of a table.
    struct Item {
        /// The names from the root on, never empty.
        let path: [String]
        /// The line, counted from 1.
        let line: Int
        /// The value; nil for a table.
        let given: Given?
        /// The lines of a list's items.
        var itemLines: [Int] = []
    }

    /// The items in the order of the text. Tables inside a list are left out.
    private(set) var items: [Item] = []

    /// The most names in one key (`a.b.c`), and the deepest nesting of lists and tables. Settings need three of each.
    private static let mostNested = 8

    private var text: TOMLText
    /// The form in which each path was given, and its line.
    private var definitions: [[String]: (form: Form, line: Int)] = [:]
    /// The number of sections and inline tables so far.
    private var tableCount = 0
    /// The number of lists and tables around the current value, and the number of lists among them.
    private var (depth, listDepth) = (0, 0)

    /// The form in which a path was given; it decides what may be added to the path.
    private enum Form: Equatable {
        /// A parent of a header's table.
        case onTheWay
        case header
        /// A parent of a dotted key of this table, to which no other table may add.
        case dotted(table: Int)
        /// A value or an inline table, to which nothing may be added.
        case whole
    }

    /// The first error, with a tolerant reader.
    private(set) var firstError: ConfigurationError?

    /// - Parameters:
    ///   - file: The file's name in errors.
    ///   - isTolerant: Whether invalid lines are skipped, and with an invalid header the keys of its section.
    /// - Throws: The first error, unless tolerant.
    init(file: String, _ contents: String, isTolerant: Bool = false) throws(ConfigurationError) {
        text = TOMLText(file: file, contents)
        // The section is nil while its header is invalid.
        var (section, number): ([String]?, Int) = ([], 0)
        while !text.isAtEnd {
            let begun = text
            do throws(ConfigurationError) {
                text.path = []
                text.skipBlanks()
                if text.take("[") {
                    section = nil
                    section = try header()
                    tableCount += 1
                    number = tableCount
                } else if let section, !text.isAtLineEnd, !text.isAtComment {
                    try assignment(in: section, number: number)
                } else if section == nil {
                    text.skipLine()
                    continue
                }
                try text.endLine()
            } catch {
                guard isTolerant else { throw error }
                firstError = firstError ?? error
                (depth, listDepth) = (0, 0)
                text = begun
                text.skipLine()
            }
        }
    }

    // MARK: Tables

    private mutating func header() throws(ConfigurationError) -> [String] {
        let isOfList = text.take("[")
        let path = try names("a section without a name is invalid; give a section such as [listen]")
        text.path = path
        if isOfList { throw text.error("\"[[\" begins a list of sections, which no setting is; give one \"[\"") }
        guard text.take("]") else { throw text.error("not TOML; close the name of the section with \"]\"") }
        for end in path.indices {
            let part = Array(path[...end])
            let isLast = end == path.count - 1
            let before = definitions[part]
            switch before?.form {
            case nil: definitions[part] = (isLast ? .header : .onTheWay, text.line)
            case .onTheWay where isLast: definitions[part] = (.header, text.line)
            case .onTheWay,
                .header where !isLast, .dotted where !isLast:
                break
            case .header, .dotted, .whole: throw twice(part, before)
            }
        }
        items.append(Item(path: path, line: text.line, given: nil))
        return path
    }

    /// Reads `key = value`.
    /// - Parameter number: The table's index among all tables of the text.
    private mutating func assignment(in table: [String], number: Int) throws(ConfigurationError) {
        let names = try names("not TOML; give a line such as \"key = 1\"")
        guard text.take("=") else { throw text.error("not TOML; give \"=\" and a value behind the key") }
        let (path, line) = (table + names, text.line)
        if listDepth == 0 { text.path = path }
        for end in table.count..<path.count {
            let part = Array(path[...end])
            let isLast = end == path.count - 1
            let before = definitions[part]
            if !isLast, before?.form == .dotted(table: number) { continue }
            guard before == nil else { throw twice(part, before) }
            definitions[part] = (isLast ? .whole : .dotted(table: number), line)
        }
        let value = try value(at: path)
        if let value, listDepth == 0 {
            items.append(Item(path: path, line: line, given: value.given, itemLines: value.itemLines))
        }
    }

    private mutating func twice(_ path: [String], _ before: (form: Form, line: Int)?) -> ConfigurationError {
        if listDepth == 0 { text.path = path }
        return text.error("given twice, first on line \(before?.line ?? 1); give it once")
    }

    /// Reads a bare, quoted or dotted key and the blanks after it.
    /// - Parameter missing: The message if there is no key.
    private mutating func names(_ missing: String) throws(ConfigurationError) -> [String] {
        var names: [String] = []
        repeat {
            text.skipBlanks()
            if text.isAtQuote {
                names.append(try text.string(isKey: true))
            } else {
                let name = text.takeWord()
                guard !name.isEmpty else { throw text.error(missing) }
                names.append(name)
            }
            text.skipBlanks()
            guard names.count <= Self.mostNested else {
                throw text.error("more than \(Self.mostNested) names in a key; give one such as listen.workers")
            }
        } while text.take(".")
        return names
    }

    // MARK: Values

    /// Reads a value; nil for an inline table, whose keys become items themselves.
    private mutating func value(at path: [String]) throws(ConfigurationError) -> (given: Given, itemLines: [Int])? {
        text.skipBlanks()
        guard depth < Self.mostNested else {
            throw text.error("more than \(Self.mostNested) lists in each other; give one, such as [\"text\"]")
        }
        depth += 1
        defer { depth -= 1 }
        if text.isAtQuote { return (.text(try text.string(isKey: false)), []) }
        if text.take("[") { return try list(at: path) }
        guard text.take("{") else { return (try word(), []) }
        try table(at: path)
        return nil
    }

    private mutating func list(at path: [String]) throws(ConfigurationError) -> (given: Given, itemLines: [Int]) {
        let first = text.line
        listDepth += 1
        defer { listDepth -= 1 }
        var (items, lines): ([Given], [Int]) = ([], [])
        repeat {
            try text.skipLines()
            if text.take("]") { return (.list(items), lines) }
            lines.append(text.line)
            items.append(try value(at: path + [String(items.count)])?.given ?? .other("a table"))
            try text.skipLines()
        } while text.take(",")
        guard text.take("]") else {
            throw text.error(
                "not TOML; give \",\" between the items of the list from line \(first), and \"]\" at its end")
        }
        return (.list(items), lines)
    }

    /// Reads an inline table, which must be on one line.
    private mutating func table(at path: [String]) throws(ConfigurationError) {
        tableCount += 1
        let number = tableCount
        if listDepth == 0 { items.append(Item(path: path, line: text.line, given: nil)) }
        text.skipBlanks()
        if text.take("}") { return }
        repeat {
            try assignment(in: path, number: number)
            text.skipBlanks()
        } while text.take(",")
        guard text.take("}") else {
            throw text.error("not TOML; give \",\" between the keys and \"}\" behind the last, on one line")
        }
    }

    /// Reads a boolean or a number. For values that no key takes, only the type is determined.
    private mutating func word() throws(ConfigurationError) -> Given {
        let word = text.takeWord(with: "+.:")
        if word == "true" || word == "false" { return .boolean(word == "true") }
        if let number = wholeNumber(word) { return .integer(number) }
        let digits = word.first == "+" || word.first == "-" ? word.dropFirst() : word[...]
        if digits == "inf" || digits == "nan" { return .other("a number with a fraction") }
        if let first = digits.utf8.first, isDigit(first) {
            if digits.contains(":") || digits.split(separator: "-").count == 3 { return .other("a date or time") }
            if digits.contains(where: { ".eE".contains($0) }) { return .other("a number with a fraction") }
        }
        throw text.error(
            "not TOML; give a text in quotes, such as \"text\", a whole number of at most 64 bits, true or false")
    }

    private func wholeNumber(_ word: String) -> Int? {
        for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] where word.hasPrefix(prefix) {
            return number(word.dropFirst(prefix.count), radix)
        }
        let sign = word.prefix { $0 == "+" || $0 == "-" }
        let digits = word[sign.endIndex...]
        guard sign.count <= 1, digits == "0" || digits.first != "0" else { return nil }
        return number(digits, 10, sign)
    }

    /// The value of digits with single underscores between them.
    private func number(_ digits: Substring, _ radix: Int, _ sign: Substring = "") -> Int? {
        let parts = digits.split(separator: "_", omittingEmptySubsequences: false)
        guard parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { Hexadecimal.value($0) != nil } }) else {
            return nil
        }
        return Int(sign + digits.filter { $0 != "_" }, radix: radix)
    }
}
