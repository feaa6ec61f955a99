package import Base

/// A value in a literal of ``JSON``.
package protocol JSONValue {
    var json: JSON { get }
}

extension JSON: JSONValue, ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral members: (String, any JSONValue)...) {
        self = .object(members.map { ($0, $1.json) })
    }
    package var json: JSON { self }

    /// The members of both objects.
    static func + (a: JSON, b: JSON) -> JSON {
        guard case .object(let first) = a, case .object(let second) = b else { return a }
        return .object(first + second)
    }
}

extension Bool: JSONValue { package var json: JSON { .bool(self) } }
extension Double: JSONValue { package var json: JSON { .number(self) } }
extension String: JSONValue { package var json: JSON { .string(self) } }
extension UInt64: JSONValue { package var json: JSON { .integer(self) } }
/// For counts, which are at least 0.
extension Int: JSONValue { package var json: JSON { .integer(UInt64(clamping: self)) } }
extension UInt32: JSONValue { package var json: JSON { .integer(UInt64(self)) } }
extension Optional: JSONValue where Wrapped: JSONValue { package var json: JSON { map(\.json) ?? .null } }
extension Array: JSONValue where Element: JSONValue { package var json: JSON { .array(map(\.json)) } }
