/// The words of a line of a scenario, taken from the front.
public struct Words {
    private var words: ArraySlice<String>

    public init(_ words: [String]) { self.words = words[...] }

    public var isEmpty: Bool { words.isEmpty }
    /// The remaining words, which are taken.
    public var rest: String {
        mutating get {
            defer { words = [] }
            return words.joined(separator: " ")
        }
    }
    public mutating func next() -> String? { words.popFirst() }
    public mutating func skip(_ word: String) -> Bool {
        guard words.first == word else { return false }
        words.removeFirst()
        return true
    }
    /// Reads the next word as a value, and takes the word only if that succeeds.
    public mutating func next<Value>(as read: (String) -> Value?) -> Value? {
        guard let value = words.first.flatMap(read) else { return nil }
        words.removeFirst()
        return value
    }
    public mutating func number() -> Int? { next { Int($0) } }
}

extension String {
    /// `0.02s`, `1700ms`, `10m`, `2h` in nanoseconds.
    public var duration: UInt64? {
        for (unit, nanoseconds) in [("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)] where hasSuffix(unit) {
            return Double(dropLast(unit.count)).map { UInt64(($0 * nanoseconds).rounded()) }
        }
        return nil
    }
}

extension [String] {
    /// The text with `a{1-3}b` written out as `a1b a2b a3b`.
    public func expanded<E: Error>(orThrow error: E) throws(E) -> [String] {
        var all: [String] = []
        for word in self {
            guard let open = word.firstIndex(of: "{"), let close = word.firstIndex(of: "}"), open < close else {
                all.append(word)
                continue
            }
            let bounds = word[word.index(after: open)..<close].split(separator: "-").compactMap { Int($0) }
            guard bounds.count == 2, bounds[0] <= bounds[1] else { throw error }
            for number in bounds[0]...bounds[1] {
                all.append(word[..<open] + "\(number)" + word[word.index(after: close)...])
            }
        }
        return all
    }
}

/// A difference between a scenario and the code, and its position.
public struct ScenarioFailure: Error, CustomStringConvertible {
    let file: String
    let line: Int
    let message: String

    public init(file: String, line: Int, message: String) {
        (self.file, self.line, self.message) = (file, line, message)
    }

    public var description: String { "\(file):\(line): \(message)" }
}
