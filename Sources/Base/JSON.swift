/// A value of JSON (RFC 8259) and its text.
package indirect enum JSON {
    case null
    case bool(Bool)
    case integer(UInt64)
    /// The number must be finite: JSON has no text for infinity or NaN.
    case number(Double)
    case string(String)
    case array([JSON])
    case object([(String, JSON)])

    package var text: String {
        switch self {
        case .null: "null"
        case .bool(let value): "\(value)"
        case .integer(let value): "\(value)"
        case .number(let value): "\(value)"
        case .string(let value): JSON.quoted(value)
        case .array(let items): "[" + items.map(\.text).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { JSON.quoted($0.0) + ":" + $0.1.text }.joined(separator: ",") + "}"
        }
    }

    /// A string with its quotes (§7). All but plain text is escaped, even where JSON would allow it: people read JSON,
    /// too.
    package static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case _ where !scalar.isPlain:
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
