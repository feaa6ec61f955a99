internal import Base
internal import DNSWire

/// The text of requests.
extension [UInt8] {
    /// Appends the names, joined by commas: each in lower case, without final dot.
    ///
    /// Anything but letters, digits, `-` and `_` in a label is refused: a `,` or `;` would ask for other names, and `&`
    /// or a space would forge the request itself.
    /// - Parameter most: How many names the service takes in one request.
    mutating func appendNames(_ names: [Name], most: Int) throws(RequestError) {
        guard !names.isEmpty, names.count <= most else { throw .nameCount(names.count) }
        for (index, name) in names.enumerated() {
            if index > 0 { append(UInt8(ascii: ",")) }
            guard name.appendHostname(to: &self) else { throw .forbiddenName(name) }
        }
    }
}

/// What stands behind the target of a request. It is kept, since most requests have the same host as the one before.
struct RequestEnd {
    private var host = ""
    private var text: [UInt8] = []

    mutating func append(host: String, to request: inout [UInt8]) throws(RequestError) {
        if text.isEmpty || host != self.host {
            text = Array(" HTTP/1.1\r\nHost: ".utf8)
            do {
                try Self.append(host, to: &text)
            } catch {
                text = []
                throw error
            }
            text.append(contentsOf: ServiceProtocol.fields.utf8)
            self.host = host
        }
        request.append(contentsOf: text)
    }

    private static func append(_ host: String, to text: inout [UInt8]) throws(RequestError) {
        let bytes = host.utf8.span
        guard !bytes.isEmpty else { throw .forbiddenHost }
        var colons = 0
        for index in bytes.indices {
            guard isHostByte(bytes[index]) else { throw .forbiddenHost }
            if bytes[index] == UInt8(ascii: ":") { colons += 1 }
        }
        let bracketed = colons > 1 && bytes[0] != UInt8(ascii: "[")
        if bracketed { text.append(UInt8(ascii: "[")) }
        text.append(contentsOf: host.utf8)
        if bracketed { text.append(UInt8(ascii: "]")) }
    }
}
