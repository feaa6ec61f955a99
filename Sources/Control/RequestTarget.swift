import Base

/// A request's path and its parameters (RFC 3986 §3.3, §3.4).
struct RequestTarget {
    let path: String
    private let parameters: [(name: String, value: String)]

    init(_ target: [UInt8]) {
        let parts = target.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        path = Self.decoded(parts[0])
        parameters = parts.dropFirst().flatMap { $0.split(separator: UInt8(ascii: "&")) }.map { pair in
            let sides = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return (Self.decoded(sides[0]), sides.count == 2 ? Self.decoded(sides[1]) : "")
        }
    }

    func values(_ name: String) -> [String] { parameters.filter { $0.name == name }.map(\.value) }

    /// An undecodable text stays as it is.
    private static func decoded(_ octets: ArraySlice<UInt8>) -> String {
        var decoded: [UInt8] = []
        var rest = octets
        while let octet = rest.popFirst() {
            let digits = Array(rest.prefix(2))
            if octet == UInt8(ascii: "%"), digits.count == 2, let value = Hexadecimal.decode(digits.span) {
                decoded += value
                rest = rest.dropFirst(2)
            } else {
                decoded.append(octet)
            }
        }
        return String(decoding: decoded, as: UTF8.self)
    }

    /// A value with the escapes that a target needs.
    static func encoded(_ text: String) -> String {
        text.utf8.map { octet -> String in
            if isUnreserved(octet) { return String(UnicodeScalar(octet)) }
            return "%" + String(0x100 + Int(octet), radix: 16, uppercase: true).dropFirst()
        }.joined()
    }
}
