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

    /// Appends what stands behind the target of a request.
    mutating func appendRequestEnd(host: String) throws(RequestError) {
        append(contentsOf: " HTTP/1.1\r\nHost: ".utf8)
        try appendHost(host)
        append(contentsOf: ServiceProtocol.fields.utf8)
    }

    private mutating func appendHost(_ host: String) throws(RequestError) {
        let bytes = host.utf8.span
        guard !bytes.isEmpty else { throw .forbiddenHost }
        var colons = 0
        for index in bytes.indices {
            guard isHostByte(bytes[index]) else { throw .forbiddenHost }
            if bytes[index] == UInt8(ascii: ":") { colons += 1 }
        }
        let bracketed = colons > 1 && bytes[0] != UInt8(ascii: "[")
        if bracketed { append(UInt8(ascii: "[")) }
        append(contentsOf: host.utf8)
        if bracketed { append(UInt8(ascii: "]")) }
    }
}
