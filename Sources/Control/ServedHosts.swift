import Base
import DNSWire

/// The hosts by which the metrics address may be requested: any address, `localhost`, and a name set by the operator.
///
/// A web page whose own name resolves to this machine (DNS rebinding) could make a browser read the status for the
/// page. Such a request has the page's name as its host, so it is refused; a request by address cannot be such an
/// attack.
struct ServedHosts {
    private let names: [Name]

    init(_ name: Name?) { names = [name, Name("localhost")].compactMap { $0 } }

    /// - Parameter host: The value of the request's `Host`, an address or a name with or without a port (RFC 9110
    ///   §7.2); the case of letters and a final dot are ignored. Nil, possible in HTTP/1.0, is served: browsers always
    ///   send the field.
    func contains(_ host: [UInt8]?) -> Bool {
        guard let host else { return true }
        let text = String(decoding: host, as: UTF8.self)
        if Endpoint(text, defaultPort: 0) != nil { return true }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 1 || UInt16(parts[1]) != nil, let name = Name(String(parts[0])) else { return false }
        return names.contains(name)
    }
}
