import Base

/// The header fields of a response that this program uses, read one by one, for HTTP/1.x and HTTP/2.
struct ResponseFields: Equatable {
    /// The longest Location that is read, in octets.
    static let locationLimit = 1024

    /// The body's length in octets by Content-Length.
    private(set) var length: Int?
    private(set) var retryAfter: Int?
    /// The server's time in seconds since 1970.
    private(set) var date: UInt64?
    private(set) var age: Int?
    private(set) var isDNSMessage: Bool?
    private(set) var location: String?
    /// Whether age, media type and location are read. Only the users of HTTP/2 need them.
    private let keepsAll: Bool

    init(keepingAll keepsAll: Bool = true) { self.keepsAll = keepsAll }

    /// Reads the server's time.
    mutating func readDate(_ value: Span<UInt8>) { date = date ?? HTTPDate.unixSeconds(value) }

    /// - Parameters:
    ///   - name: The name, in either case of letters.
    ///   - value: The value without white space around it.
    mutating func read(_ name: Span<UInt8>, _ value: Span<UInt8>) throws(HTTPError) {
        if isEqual(name, name.indices, to: "content-length") {
            guard let count = decimal(value, value.indices, maximum: .max) else { throw .badContentLength }
            if let length, length != count { throw .badContentLength }
            length = count
        } else if isEqual(name, name.indices, to: "content-encoding") {
            guard value.isEmpty || isEqual(value, value.indices, to: "identity") else { throw .contentEncoding }
        } else if isEqual(name, name.indices, to: "retry-after") {
            retryAfter = decimal(value, value.indices, maximum: Int(Int32.max)) ?? retryAfter
        } else if !keepsAll {
            return
        } else if isEqual(name, name.indices, to: "content-type") {
            isDNSMessage = isDNSMessage ?? true && DNSMediaType.isNamed(by: value)
        } else if isEqual(name, name.indices, to: "age") {
            // The first of several members counts, and a value that is not a number is ignored (RFC 9111 §5.1).
            let end = firstIndex(of: UInt8(ascii: ","), in: value, value.indices) ?? value.count
            age = age ?? decimal(value, trimmed(value, 0..<end), maximum: Int(Int32.max))
        } else if isEqual(name, name.indices, to: "location") {
            location = location ?? Self.location(value)
        }
    }

    /// The URL up to its query, since a query may contain the name of a lookup; nil: the value is not a URL.
    private static func location(_ value: Span<UInt8>) -> String? {
        var text: [UInt8] = []
        for index in value.indices {
            if value[index] == UInt8(ascii: "?") || value[index] == UInt8(ascii: "#") { break }
            guard value[index] > 0x20, value[index] < 0x7F, index < locationLimit else { return nil }
            text.append(value[index])
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// The media type of DNS messages (RFC 8484 §6).
package enum DNSMediaType {
    package static let name: StaticString = "application/dns-message"

    /// Whether a value of Content-Type is this type, with any parameters.
    package static func isNamed(by value: Span<UInt8>) -> Bool {
        let end = firstIndex(of: UInt8(ascii: ";"), in: value, value.indices) ?? value.count
        return isEqual(value, trimmed(value, 0..<end), to: name)
    }
}
