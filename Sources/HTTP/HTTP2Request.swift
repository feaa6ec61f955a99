/// One request over HTTPS. Copies share the head, so a request that differs from the one before only in its ``body``
/// costs only that body.
package struct HTTP2Request: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
    }

    /// The most octets of all names and values together.
    package static let headLimit = 16 * 1024

    package var body: [UInt8] = []
    /// The names and values of the head, one behind the other, and the length of each.
    let text: [UInt8]
    let lengths: [(name: Int, value: Int)]

    /// - Parameters:
    ///   - authority: Host, and the port if it is not 443.
    ///   - path: With the query.
    ///   - fields: The fields beyond method, scheme, authority, path and Content-Length; their names in lower case.
    /// - Returns: Nil if the head is longer than ``headLimit``.
    package init?(_ method: Method, authority: String, path: String, fields: [(name: String, value: String)] = []) {
        let pseudo = [
            (name: ":method", value: method.rawValue), (name: ":scheme", value: "https"),
            (name: ":authority", value: authority), (name: ":path", value: path),
        ]
        var text: [UInt8] = []
        lengths = (pseudo + fields).map { name, value in
            text += name.utf8
            text += value.utf8
            return (name.utf8.count, value.utf8.count)
        }
        guard text.count <= Self.headLimit else { return nil }
        self.text = text
    }
}
