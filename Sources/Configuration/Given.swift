import Base

/// A value as the operator wrote it, not yet interpreted for its key.
enum Given: Sendable, Equatable {
    case text(String)
    case integer(Int)
    case boolean(Bool)
    case list([Given])
    /// TOML of a type that no key takes, with the type's name: "a section", "a date".
    case other(String)
    /// Text from the environment, for a value of any type.
    case environment(String)

    /// The value as text; nil if the value is of another type.
    var text: String? {
        switch self {
        case .text(let text), .environment(let text): text
        case .integer, .boolean, .list, .other: nil
        }
    }

    /// The value for a message, shortened if long.
    var shown: String {
        switch self {
        case .text(let text), .environment(let text): quoted(text.prefix(60)) + (text.count > 60 ? "…" : "")
        case .integer(let value): String(value)
        case .boolean(let value): String(value)
        case .list(let items): items.isEmpty ? "an empty list" : "a list"
        case .other(let kind): kind
        }
    }
}

/// The reason for which a value is invalid for its key; ``ConfigurationError`` adds its origin.
struct Problem: Error {
    let message: String
    /// The invalid item of a list, counted from 1; nil: the value as a whole.
    var item: Int?
    /// Whether the message suggests a value.
    var isSuggestive = false

    init(_ message: String) { self.message = message }

    /// - Parameters:
    ///   - shown: The value; for a secret, words that do not show it.
    ///   - meant: The value to suggest, in the form to be written; nil for no suggestion.
    init(_ shown: String, expected: String, meant: String? = nil) {
        message = "\(shown) is not right; give \(expected)\(Nearest.question(meant))"
        isSuggestive = meant != nil
    }
}

/// The text as a TOML basic string, with unusual characters escaped.
func quoted(_ text: some StringProtocol) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"": result += "\\\""
        case "\\": result += "\\\\"
        case "\n": result += "\\n"
        case "\r": result += "\\r"
        case "\t": result += "\\t"
        case _ where !scalar.isPlain:
            let hex = String(scalar.value, radix: 16, uppercase: true)
            result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result + "\""
}
