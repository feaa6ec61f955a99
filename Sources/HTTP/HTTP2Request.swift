import Base

/// One request over HTTPS. Copies share the head, for requests that differ only in their ``body``.
package struct HTTP2Request: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
    }

    /// The most octets of all names and values of the head together.
    package static let headLimit = 16 * 1024

    package var body: [UInt8] = []
    let head: HTTP2Head

    /// - Parameters:
    ///   - authority: The host, and the port if it is not 443.
    ///   - path: The path with the query.
    ///   - fields: The fields beyond method, scheme, authority, path and Content-Length. Their names are in lower case.
    /// - Returns: Nil if the head is longer than ``headLimit``.
    package init?(_ method: Method, authority: String, path: String, fields: [(name: String, value: String)] = []) {
        let pseudo = [
            (name: ":method", value: method.rawValue), (name: ":scheme", value: "https"),
            (name: ":authority", value: authority), (name: ":path", value: path),
        ]
        head = HTTP2Head(pseudo + fields)
        guard head.text.count <= Self.headLimit else { return nil }
    }
}

/// The fields of a request or a response.
struct HTTP2Head: Sendable {
    /// Names and values in sequence, and the length of each.
    private(set) var text: [UInt8] = []
    private(set) var lengths: [(name: Int, value: Int)] = []

    init() {}

    init(_ fields: [(name: String, value: String)]) {
        for (name, value) in fields {
            text += name.utf8
            text += value.utf8
            lengths.append((name.utf8.count, value.utf8.count))
        }
    }

    /// Replaces the present head by the head of an answer, and reuses the memory.
    mutating func begin(_ answer: HTTPAnswer) {
        text.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        add(":status") { $0.appendDecimal(UInt64(answer.status.rawValue)) }
        answer.addFields { name, value in add(name, value) }
        add("content-length") { $0.appendDecimal(UInt64(answer.body.count)) }
    }

    mutating func add(_ name: StaticString, _ value: (inout [UInt8]) -> Void) {
        let start = text.count
        text.append(name)
        let middle = text.count
        value(&text)
        lengths.append((middle - start, text.count - middle))
    }
}
