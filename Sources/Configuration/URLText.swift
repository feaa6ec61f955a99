import Base
import DNSWire

/// `HOST` or `HOST:PORT` of a URL (RFC 3986 §3.2). HOST is an address, with brackets if it is of IPv6, or a host name.
struct Authority {
    let host: Server.Host
    /// The port, never 0; nil if the text has none.
    let port: UInt16?

    /// Nil for an invalid text, and for a text with user information.
    ///
    /// - Parameter allowsZone: Whether a link-local address may have a zone.
    init?(_ text: Substring, allowsZone: Bool = false) {
        if text.first == "[" || IPAddress(text.prefix { $0 != ":" })?.isIPv4 == true {
            let withPort = Endpoint(text, allowsZone: allowsZone)
            guard let endpoint = withPort ?? Endpoint(text, defaultPort: 0, allowsZone: allowsZone) else { return nil }
            host = .address(endpoint.address, endpoint.zone)
            port = withPort?.port
        } else {
            let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = hostName(parts[0]) else { return nil }
            host = .name(name)
            guard parts.count == 2 else {
                port = nil
                return
            }
            // The port is parsed like the port of an address.
            guard let endpoint = Endpoint("0.0.0.0:" + parts[1]) else { return nil }
            port = endpoint.port
        }
        guard port != 0 else { return nil }
    }
}

/// A host name in lower case without a final dot. Nil for an invalid text, such as an address or a name that is not in
/// its `xn--` form.
func hostName(_ text: some StringProtocol) -> String? {
    guard text.utf8.allSatisfy(isTarget), let name = Name(String(text)), name.isHostname,
        // A name whose last label is a number is a malformed address (RFC 3696 §2).
        name.description.split(separator: ".").last?.allSatisfy(\.isNumber) == false
    else { return nil }
    return name.description
}

/// Whether a text is valid in a URL after the authority, as a path, or a path and a query (RFC 3986 §3.3, §3.4).
func isTarget(_ text: Substring) -> Bool {
    // Two hexadecimal digits follow each per cent sign (RFC 3986 §2.1).
    text.utf8.allSatisfy(isTarget)
        && text.utf8.split(separator: UInt8(ascii: "%"), omittingEmptySubsequences: false).dropFirst().allSatisfy {
            part in
            part.count >= 2 && part.prefix(2).allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
        }
}

private func isTarget(_ octet: UInt8) -> Bool { isUnreserved(octet) || "!$&'()*+,;=:@/?%".utf8.contains(octet) }
