/// Circles of files inside a module: who opens one of them has to read them all.
///
/// A file leads to another when it names a type that the other one defines at its top level. An extension defines
/// nothing: what it adds is found by the name of the type, whose file it leads to. Nor do members count, which stand
/// behind a dot, or what is private to its file.
struct Circles {
    /// By file: the types it defines, and every name it uses.
    private var files: [String: (defined: Set<String>, used: Set<String>)] = [:]

    /// - Parameter texts: The files of one module, by name.
    init(_ texts: [String: String]) {
        files = texts.mapValues { text in
            var names = SourceNames()
            names.read(text)
            return (names.defined, names.used)
        }
    }

    /// The files of each circle, in order; the largest first.
    func found() -> [[String]] {
        var definers: [String: [String]] = [:]
        for (file, names) in files { for name in names.defined { definers[name, default: []].append(file) } }
        var search = Search(
            next: Dictionary(
                uniqueKeysWithValues: files.map { file, names in
                    (file, Set(names.used.flatMap { definers[$0] ?? [] }).subtracting([file]))
                }))
        for file in files.keys.sorted() { search.visit(file) }
        return search.circles.sorted { ($1.count, $0[0]) < ($0.count, $1[0]) }
    }

    /// Which types of the others each file of a circle names.
    func reasons(_ circle: [String]) -> String {
        circle.map { file in
            let names = circle.filter { $0 != file }.flatMap { files[$0]?.defined ?? [] }
                .filter { files[file]?.used.contains($0) ?? false }
            return "\(file) names \(names.sorted().joined(separator: ", "))"
        }.joined(separator: "; ")
    }

    /// Tarjan's search for strongly connected components.
    private struct Search {
        let next: [String: Set<String>]
        private(set) var circles: [[String]] = []
        private var numbers: [String: Int] = [:]
        /// The lowest number that can be reached.
        private var lowest: [String: Int] = [:]
        private var stack: [String] = []

        init(next: [String: Set<String>]) { self.next = next }

        mutating func visit(_ file: String) {
            guard numbers[file] == nil else { return }
            let number = numbers.count
            (numbers[file], lowest[file]) = (number, number)
            stack.append(file)
            for other in next[file] ?? [] {
                if numbers[other] == nil {
                    visit(other)
                    lowest[file] = min(lowest[file]!, lowest[other]!)
                } else if stack.contains(other) {
                    lowest[file] = min(lowest[file]!, numbers[other]!)
                }
            }
            guard lowest[file] == number, let start = stack.firstIndex(of: file) else { return }
            if stack.count - start > 1 { circles.append(stack[start...].sorted()) }
            stack.removeSubrange(start...)
        }
    }
}

/// The names in a source file, without those in comments and texts; what is put into a text counts.
private struct SourceNames {
    private(set) var defined: Set<String> = []
    private(set) var used: Set<String> = []

    private static let definers: Set<String> = ["struct", "class", "enum", "protocol", "actor", "typealias"]

    mutating func read(_ text: String) {
        var text = text
        // Byte by byte, over plain memory: in unoptimized code an array takes many times as long.
        text.withUTF8 { read($0) }
    }

    private mutating func read(_ bytes: UnsafeBufferPointer<UInt8>) {
        var (index, depth) = (0, 0)
        /// Parentheses open in each text whose inserted part this is, and how that text ends.
        var texts: [(open: Int, quotes: Int, marks: Int)] = []
        var previous = ""
        var isPrivate = false
        func holds(_ word: StaticString, at offset: Int) -> Bool {
            guard offset + word.utf8CodeUnitCount <= bytes.count else { return false }
            return (0..<word.utf8CodeUnitCount).allSatisfy { bytes[offset + $0] == word.utf8Start[$0] }
        }
        func count(_ byte: UInt8, at offset: Int, most: Int = .max) -> Int {
            var end = offset
            while end < bytes.count, bytes[end] == byte, end - offset < most { end += 1 }
            return end - offset
        }
        /// Goes to the end of a text, or to what is put into it.
        func skipText(quotes: Int, marks: Int) {
            while index < bytes.count {
                if bytes[index] == UInt8(ascii: "\\"), count(UInt8(ascii: "#"), at: index + 1, most: marks) == marks {
                    index += 1 + marks
                    if index < bytes.count, bytes[index] == UInt8(ascii: "(") {
                        index += 1
                        texts.append((0, quotes, marks))
                        return
                    }
                    index += 1
                } else if count(UInt8(ascii: "\""), at: index, most: quotes) == quotes,
                    count(UInt8(ascii: "#"), at: index + quotes, most: marks) == marks
                {
                    index += quotes + marks
                    return
                } else {
                    index += 1
                }
            }
        }
        while index < bytes.count {
            let byte = bytes[index]
            if Self.isWord(byte) {
                let start = index
                while index < bytes.count, Self.isWord(bytes[index]) { index += 1 }
                let isMember = start > 0 && bytes[start - 1] == UInt8(ascii: ".")
                let word = String(decoding: bytes[start..<index], as: UTF8.self)
                if depth == 0, Self.definers.contains(previous), !isPrivate { defined.insert(word) }
                if depth == 0, word == "private" || word == "fileprivate" { isPrivate = true }
                if !isMember { used.insert(word) }
                previous = word
                continue
            }
            if holds("//", at: index) {
                while index < bytes.count, bytes[index] != UInt8(ascii: "\n") { index += 1 }
                continue
            }
            let marks = count(UInt8(ascii: "#"), at: index)
            if index + marks < bytes.count, bytes[index + marks] == UInt8(ascii: "\"") {
                let quotes = holds("\"\"\"", at: index + marks) ? 3 : 1
                index += marks + quotes
                skipText(quotes: quotes, marks: marks)
                continue
            }
            index += 1
            switch byte {
            case UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: "\n"): isPrivate = false
            case UInt8(ascii: "("): if !texts.isEmpty { texts[texts.count - 1].open += 1 }
            case UInt8(ascii: ")"):
                guard let text = texts.last else { break }
                if text.open > 0 {
                    texts[texts.count - 1].open -= 1
                } else {
                    texts.removeLast()
                    skipText(quotes: text.quotes, marks: text.marks)
                }
            default: break
            }
        }
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: byte >= 0x80
        }
    }
}
