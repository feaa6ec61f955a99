public import Base

extension Settings.Account {
    /// The URL to which reports are sent: `http://` or `https://`, a host, optionally a port, path and query.
    public struct ReportURL: Sendable, Equatable, CustomStringConvertible {
        public let isSecure: Bool
        /// The URL's host: a name in lower case without a final dot, or an address, of IPv6 without its brackets.
        public let host: String
        /// The URL's port. Without a port in the URL, 80, or 443 with `isSecure`.
        public let port: UInt16
        /// Path and query, from the first slash on; `/` if the URL has none. The text needs no escapes in a request.
        public let path: String
        /// The host's address; nil: the host is a name.
        public let address: IPAddress?

        /// Nil for an invalid text, and for a URL with user information or a fragment.
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
            guard isTarget(target), let authority = Authority(authority) else { return nil }
            path = (target.first == "/" ? "" : "/") + target
            port = authority.port ?? (isSecure ? 443 : 80)
            switch authority.host {
            case .address(let address, _): (self.address, host) = (address, address.description)
            case .name(let name): (address, host) = (nil, name)
            }
        }

        /// `HOST` or `HOST:PORT`, as in the URL and in the header `Host` (RFC 9110 §7.2).
        public var authority: String {
            let bracketed = address?.isIPv4 == false ? "[\(host)]" : host
            return port == (isSecure ? 443 : 80) ? bracketed : "\(bracketed):\(port)"
        }

        public var description: String { "\(isSecure ? "https" : "http")://\(authority)\(path)" }
    }
}
