package import Base

extension Endpoint {
    /// The value of a request's `Host` field, or of `:authority`: the host, and the port if it is not the usual one (RFC 9110
    /// §7.2).
    /// - Parameter serverName: The server's name; nil or empty: its address is used.
    package func hostField(serverName: String?, isSecure: Bool) -> String {
        let address = address.isIPv4 ? "\(address)" : "[\(address)]"
        let host = serverName.flatMap { $0.isEmpty ? nil : $0 } ?? address
        return port == (isSecure ? 443 : 80) ? host : "\(host):\(port)"
    }
}
