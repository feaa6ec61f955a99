import Synchronization
import TOMLKit

/// A configuration file as TOML: the values given in it, and the line of each.
struct Document {
    struct Entry {
        /// In the section of a group with the group's name behind a dot; empty for a key before the first section.
        let section: String
        let name: String
        let line: Int
        let given: Given

        var path: String { section.isEmpty ? name : "\(section).\(name)" }
    }

    /// In the order of their lines.
    let entries: [Entry]
    /// The sections that were given, empty ones too, with their lines; those of groups as `upstreams.NAME`.
    let sections: [String: Int]
    /// See ``KeyLines/itemLines``.
    let itemLines: [String: [Int]]

    /// Parses a text, or returns the result for the same text from before: TOMLKit never frees the memory of a parsed
    /// document, and a daemon must not grow when it reads the same file again and again.
    /// - Parameter file: The file's name in errors.
    static func read(file: String, contents: String) throws(ConfigurationError) -> Document {
        let text = Text(file: file, contents: Digest(contents.utf8))
        if let known = latest.withLock({ $0.first { $0.text == text } }) { return try known.result.get() }
        let result = Result { () throws(ConfigurationError) in try Document(file: file, contents: contents) }
        latest.withLock { latest in
            if latest.count == mostKnown { latest.removeFirst() }
            latest.append((text, result))
        }
        return try result.get()
    }

    private struct Text: Equatable {
        let file: String
        /// Only a digest: the text may hold a secret, which is kept only where it is used.
        let contents: Digest
    }

    private static let latest = Mutex<[(text: Text, result: Result<Document, ConfigurationError>)]>([])
    /// The most parsed texts remembered: that of a file, and those of some attempts at changing it.
    private static let mostKnown = 16

    private init(file: String, contents: String) throws(ConfigurationError) {
        let lines = KeyLines(contents)
        // The parser would take a NUL for the end of the text or of a value, and ignore the rest.
        if let line = Document.lineWithNUL(contents) {
            let message = "a NUL character is not right here; take it out"
            throw ConfigurationError(file: file, line: line, key: "syntax", message: message)
        }
        if let (line, key, message) = lines.hazard {
            throw ConfigurationError(file: file, line: line, key: key, message: message)
        }
        let root: TOMLTable
        do {
            root = try TOMLTable(string: contents)
        } catch {
            throw Document.syntaxError(error as? TOMLParseError, file: file, lines: lines)
        }

        var entries: [Entry] = []
        var sections: [String: Int] = [:]
        for section in root.keys {
            guard let table = root[section]?.table else {
                let given = Document.given(root[section])
                entries.append(Entry(section: "", name: section, line: lines.line(of: section), given: given))
                continue
            }
            sections[section] = lines.line(of: section)
            for name in table.keys {
                let path = "\(section).\(name)"
                guard section == Section.upstreams.rawValue, let group = table[name]?.table else {
                    let given = Document.given(table[name])
                    entries.append(Entry(section: section, name: name, line: lines.line(of: path), given: given))
                    continue
                }
                sections[path] = lines.line(of: path)
                for name in group.keys {
                    let line = lines.line(of: "\(path).\(name)")
                    entries.append(Entry(section: path, name: name, line: line, given: Document.given(group[name])))
                }
            }
        }
        self.entries = entries.sorted { $0.line < $1.line }
        self.sections = sections
        itemLines = lines.itemLines
    }

    private static func lineWithNUL(_ contents: String) -> Int? {
        let lines = contents.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let index = lines.firstIndex { line in
            line.contains(0) || ["\\u0000", "\\U00000000"].contains { Substring(line).contains($0) }
        }
        return index.map { $0 + 1 }
    }

    private static func given(_ value: (any TOMLValueConvertible)?) -> Given {
        guard let value else { return .other("nothing") }
        switch value.type {
        case .string: return .text(value.string ?? "")
        case .int: return .integer(value.int ?? 0)
        case .bool: return .boolean(value.bool ?? false)
        case .array: return .list(value.array?.map { given($0) } ?? [])
        case .table: return .other("a table")
        case .double: return .other("a number with a fraction")
        case .date, .time, .dateTime: return .other("a date or time")
        }
    }

    /// The parser's own message may quote a value, which could be a secret. It is used only where the key is known and
    /// no secret, or where there is no key at all.
    private static func syntaxError(_ error: TOMLParseError?, file: String, lines: KeyLines) -> ConfigurationError {
        guard let error else {
            return ConfigurationError(file: file, line: 1, key: "syntax", message: "the text is not right; give TOML")
        }
        let line = max(1, error.source.begin.line)
        let place = lines.place(at: line)
        let key = place?.line == line ? place?.path : nil
        if let key, let first = lines.places.first(where: { $0.path == key }), first.line < line {
            let message = "given twice, first on line \(first.line); give it once"
            return ConfigurationError(file: file, line: line, key: key, message: message)
        }
        let isHarmless =
            place.map { place in
                place.isHeader || KeyPlace(path: place.path).map { Key.named($0)?.isSecret ?? false } == false
            } ?? true
        let message =
            isHarmless
            ? "not TOML: \(onOneLine(error.description))" : "not TOML; a text must stand in quotes, such as \"text\""
        return ConfigurationError(file: file, line: line, key: key ?? "syntax", message: message)
    }
}
