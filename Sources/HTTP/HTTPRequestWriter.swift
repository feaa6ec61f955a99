package import Base

/// Writes HTTP/1.1 requests to one server (RFC 9112 §3). All requests of this program come from here.
package struct HTTPRequestWriter: Sendable {
    /// The part between the target and the fields of a body.
    private let fields: [UInt8]

    /// The value of User-Agent has no version, which would show an observer which daemons are old.
    /// - Parameters:
    ///   - host: The value of Host: a name or an address, with `:PORT` unless the port is the scheme's default. Octets
    ///     that no host has are left out, so that the value cannot end its field.
    ///   - keepsConnection: Whether another request may follow on the connection.
    package init(host: String, keepsConnection: Bool) {
        var fields = Array(" HTTP/1.1\r\nHost: ".utf8)
        fields += host.utf8.filter(isHostByte)
        fields.append("\r\nUser-Agent: httpdnsd\r\nAccept: */*\r\nConnection: ")
        fields.append(keepsConnection ? "keep-alive\r\n" : "close\r\n")
        self.fields = fields
    }

    /// - Parameter target: Path and query. The caller ensures that they have only visible ASCII.
    package func get(_ target: [UInt8]) -> [UInt8] { get { $0 += target } }

    /// - Parameter appendTarget: Appends the target to the request.
    package func get<Failure>(
        _ appendTarget: (inout [UInt8]) throws(Failure) -> Void
    ) throws(Failure) -> [UInt8] {
        var request = [UInt8]("GET ", capacity: 640)
        try appendTarget(&request)
        request += fields
        request.append("\r\n")
        return request
    }

    /// - Parameters:
    ///   - target: Path and query. The caller ensures that they have only visible ASCII.
    ///   - body: The media type and the octets of the body; nil for a request without a body.
    package func post(_ target: [UInt8], body: (mediaType: StaticString, octets: [UInt8])? = nil) -> [UInt8] {
        var request = Array("POST ".utf8) + target + fields
        if let body {
            request += Array("Content-Type: \(body.mediaType)\r\nContent-Length: \(body.octets.count)\r\n".utf8)
        }
        return request + [0x0D, 0x0A] + (body?.octets ?? [])
    }
}

extension Endpoint {
    /// The value of a request's `Host` field (RFC 9110 §7.2).
    /// - Parameter serverName: The server's name; if nil or empty, the server's address is used.
    package func hostField(serverName: String?, isSecure: Bool) -> String {
        let name = serverName ?? ""
        let text = name.isEmpty ? "\(address)" : name
        let host = text.contains(":") ? "[\(text)]" : text
        return port == (isSecure ? 443 : 80) ? host : "\(host):\(port)"
    }
}
