import Base
import DNSWire

/// By what the metrics address may be asked for: any address, `localhost`, and a name of the operator's.
///
/// A web page that has its own name lead to this machine (DNS rebinding) makes a browser read what is here and give it
/// away; the name it must ask by is the page's, so it is refused. No address is anybody's name.
struct ServedHosts {
    private let names: [Name]

    init(_ name: Name?) { names = [name, Name("localhost")].compactMap { $0 } }

    /// - Parameter host: What stood in the request's `Host`, an address or a name with or without a port (RFC 9110
    ///   §7.2); letters' case and a dot at a name's end do not matter. Nil, of HTTP/1.0, is served: no browser leaves
    ///   it out.
    func contains(_ host: [UInt8]?) -> Bool {
        guard let host else { return true }
        let text = String(decoding: host, as: UTF8.self)
        if Endpoint(text, defaultPort: 0) != nil { return true }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 1 || UInt16(parts[1]) != nil, let name = Name(String(parts[0])) else { return false }
        return names.contains(name)
    }
}
