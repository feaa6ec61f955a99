public import Base
import DNSWire

extension Settings.HTTPDNS {
    /// Where reports are sent: `http://` or `https://`, a host, perhaps a port, path and query.
    public struct ReportURL: Sendable, Equatable, CustomStringConvertible {
        public let isSecure: Bool
        /// A name in lower case without final dot, or an address; one of IPv6 without its brackets.
        public let host: String
        /// 80, with `isSecure` 443, if the URL names none.
        public let port: UInt16
        /// From the first slash on, the query included; `/` if the URL has none. Stands in a request as it is.
        public let path: String
        /// The host if it is an address; nil: it is a name, to be looked up.
        public let address: IPAddress?

        /// A URL from text; nil for any other, one with user information or a fragment too.
        init?(_ text: String) {
            guard let separator = text.firstRange(of: "://") else { return nil }
            switch text[..<separator.lowerBound] {
            case "http": isSecure = false
            case "https": isSecure = true
            default: return nil
            }
            let rest = text[separator.upperBound...]
            let authority = rest.prefix { $0 != "/" && $0 != "?" }
            let target = rest[authority.endIndex...]
            guard target.utf8.allSatisfy(isTarget), isEscaped(target.utf8) else { return nil }
            path = (target.first == "/" ? "" : "/") + target
            let defaultPort: UInt16 = isSecure ? 443 : 80
            // An IPv6 address stands in brackets here (RFC 3986 §3.2.2).
            let isAddress = authority.first == "[" || IPAddress(authority.prefix { $0 != ":" })?.isIPv4 == true
            if isAddress {
                guard let endpoint = Endpoint(authority, defaultPort: defaultPort) else { return nil }
                address = endpoint.address
                host = endpoint.address.description
                port = endpoint.port
            } else {
                guard let (name, port) = named(authority, defaultPort: defaultPort) else { return nil }
                address = nil
                host = name
                self.port = port
            }
            guard port != 0 else { return nil }
        }

        /// `HOST` or `HOST:PORT`, as it stands in a URL and in the header `Host` (RFC 9110 §7.2).
        public var authority: String {
            let bracketed = address?.isIPv4 == false ? "[\(host)]" : host
            return port == (isSecure ? 443 : 80) ? bracketed : "\(bracketed):\(port)"
        }

        public var description: String { "\(isSecure ? "https" : "http")://\(authority)\(path)" }
    }
}

/// Reads `NAME` or `NAME:PORT`.
private func named(_ authority: Substring, defaultPort: UInt16) -> (name: String, port: UInt16)? {
    let parts = authority.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let name = Name(String(parts[0])), name.isHostname, parts[0].utf8.allSatisfy(isTarget),
        // A name whose last label is a number is an address that is wrong (RFC 3696 §2).
        name.description.split(separator: ".").last?.allSatisfy(\.isNumber) == false
    else { return nil }
    guard parts.count == 2 else { return (name.description, defaultPort) }
    // The port is read as that of an address is.
    return Endpoint("0.0.0.0:" + parts[1]).map { (name.description, $0.port) }
}

/// What may stand in a path or query (RFC 3986 §3.3, §3.4).
private func isTarget(_ octet: UInt8) -> Bool {
    switch octet {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
    default: "-._~!$&'()*+,;=:@/?%".utf8.contains(octet)
    }
}

/// Whether two hexadecimal digits stand behind each per cent sign (RFC 3986 §2.1).
private func isEscaped(_ target: Substring.UTF8View) -> Bool {
    target.split(separator: UInt8(ascii: "%"), omittingEmptySubsequences: false).dropFirst().allSatisfy { part in
        part.count >= 2 && part.prefix(2).allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
    }
}
