public import Base

/// One entry of `servers`.
public enum UpstreamServer: Hashable, Sendable {
    case server(Server)
    /// The plain servers of `fallback.resolvConf`, updated when the file changes.
    case resolvConf
}

/// The text of a server: an address, a URL or a DNS stamp. Parses and formats it.
enum ServerText {
    /// The longest text, in octets: more than the longest valid stamp.
    static let maximumLength = 4096
    /// The longest path, in octets: a path must fit into a stamp as well.
    static let maximumPathLength = 255
    /// The most addresses of one server, and the most digests of its certificates.
    static let maximumAddresses = 16

    static let resolvConf = "resolvConf"

    /// - Throws: What is wrong and what would be right. The message never contains user information, which may be a
    ///   password.
    static func read(_ text: String) throws(Problem) -> UpstreamServer {
        if text == resolvConf { return .resolvConf }
        guard text.utf8.count <= maximumLength else {
            throw Problem("a server of \(text.utf8.count) octets is not right; give at most \(maximumLength)")
        }
        guard !text.utf8.contains(UInt8(ascii: " ")), text.contains("://") || !text.utf8.contains(UInt8(ascii: ","))
        else {
            throw Problem(
                "a server with a blank or a comma is not right; give each server a text of its own: [\"192.0.2.1\", "
                    + "\"192.0.2.2\"]")
        }
        // The message does not show the text: with combining characters, user information might not be recognised.
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw Problem(
                "a server with other characters than printable ASCII is not right; give a name in its xn-- form, and in a path "
                    + "%XX")
        }
        if let names = names(text) { throw names }
        guard let separator = text.firstRange(of: "://") else { return .server(try plain(text)) }
        let rest = text[separator.upperBound...]
        switch text[..<separator.lowerBound].lowercased() {
        case "sdns": return .server(try Stamp.read(rest))
        case "tcp": return .server(try ServerURL(text, rest, scheme: "tcp").tcp())
        case "tls": return .server(try ServerURL(text, rest, scheme: "tls").tls())
        case "https": return .server(try ServerURL(text, rest, scheme: "https").https())
        case let scheme: throw unknown(scheme)
        }
    }

    /// The text from which ``read(_:)`` makes this server.
    static func text(of server: UpstreamServer) -> String {
        guard case .server(let server) = server else { return resolvConf }
        if !server.hashes.isEmpty { return Stamp.text(of: server) }
        let fragment = server.certificateName ?? server.addresses.map(\.description).joined(separator: "+")
        return "\(server)" + (fragment.isEmpty ? "" : "#" + fragment)
    }

    private static func plain(_ text: String) throws(Problem) -> Server {
        if let endpoint = Endpoint(text, defaultPort: Server.Kind.plain.facts.usualPort, allowsZone: true),
            endpoint.port > 0
        {
            return Server(endpoint)
        }
        if let spelling = text.lowercased() == resolvConf.lowercased() ? quoted(resolvConf) : spelling(text)?.words {
            throw Problem(Given.text(text).shown, expected: spelling)
        }
        // `tcp-tls:HOST`, as in other programs. The text before an "@" may be a password.
        if let colon = text.firstIndex(of: ":"), !text.contains("@"), let form = form(text[..<colon].lowercased()) {
            let host = text[colon...].dropFirst()
            throw Problem(Given.text(text).shown, expected: form.replacing("HOST", with: host))
        }
        if let name = hostName(text) {
            let encrypted = "\"tls://\(name)\" or \"https://\(name)/dns-query\""
            throw Problem("\(quoted(name)) is a name; give the address of a plain server, or \(encrypted)")
        }
        throw Problem(
            text.contains("@") ? "what it says" : Given.text(text).shown,
            expected: "ADDRESS or ADDRESS:PORT, such as \"192.0.2.53\"")
    }

    /// The server meant by a text in another program's form.
    struct Spelling {
        /// The valid text.
        let text: String
        /// The network device, which is a separate key of the group; nil for no device.
        let device: String?

        var words: String { quoted(text) + (device.map { " and, beside servers, device = \(quoted($0))" } ?? "") }
    }

    /// Reads `ADDRESS@PORT#NAME`, `ADDRESS#PORT`, `ADDRESS#NAME`, or a form with `%NAME` instead of `#NAME`. A `%NAME`
    /// without a dot is a device. Nil for any other form.
    static func spelling(_ text: some StringProtocol) -> Spelling? {
        let address = text.prefix { !"@#%".contains($0) }
        guard let endpoint = Endpoint(String(address), defaultPort: 0) else { return nil }
        var port = endpoint.port
        var (name, device): (String?, String?)
        var rest = text[address.endIndex...]
        while let mark = rest.popFirst() {
            let word = rest.prefix { !"@#%".contains($0) }
            rest = rest[word.endIndex...]
            if mark == "%", !word.contains("."), Zone(word) != nil, device == nil {
                device = String(word)
            } else if let number = UInt16(word), mark != "%", port == 0, number > 0 {
                port = number
            } else if let host = hostName(word), mark != "@", name == nil {
                name = host
            } else {
                return nil
            }
        }
        if name == nil, port == 0, device == nil { return nil }
        let host = endpoint.address.isIPv4 ? "\(endpoint.address)" : "[\(endpoint.address)]"
        let authority = port == 0 ? host : "\(host):\(port)"
        return Spelling(text: name.map { "tls://\(authority)#\($0)" } ?? authority, device: device)
    }

    /// The error for a server with its names, `[/x/]ADDRESS` or `/x/ADDRESS`; nil for any other form.
    private static func names(_ text: String) -> Problem? {
        let inner = text.hasPrefix("[/") ? text.dropFirst() : text[...]
        let parts = inner.split(separator: "/", omittingEmptySubsequences: false)
        guard inner.first == "/", parts.count > 2, !text.contains("@") else { return nil }
        return Problem(
            Given.text(text).shown,
            expected: "the server alone in servers of a group [upstreams.NAME], and the names as its domains")
    }

    /// The form of a server here for another program's scheme; nil: the scheme is unknown.
    private static func form(_ scheme: String) -> String? {
        switch scheme {
        case "tls", "dot", "dns+tls", "tcp-tls", "tcp+tls": "\"tls://HOST\""
        case "https", "doh", "h2", "dns+https": "\"https://HOST/dns-query\""
        case "udp", "dns", "tcp+udp", "dns+udp": "\"HOST\""
        case "tcp", "dns+tcp": "\"tcp://HOST\""
        default: nil
        }
    }

    private static func unknown(_ scheme: String) -> Problem {
        switch scheme {
        case "udp": Problem("\"udp://\" is not right; give ADDRESS or ADDRESS:PORT alone")
        case "dot", "dns+tls", "tcp-tls", "tcp+tls":
            Problem("\(quoted(scheme + "://")) is not right; give \"tls://HOST\"")
        case "http": Problem("\"http://\" would show and believe everything; give \"https://HOST/PATH\"")
        case "doh", "h2": Problem("\(quoted(scheme + "://")) is not right; give \"https://HOST/PATH\"")
        case "h3": Problem("\"h3://\": HTTP/3 is not spoken here; give \"https://HOST/PATH\"")
        case "quic", "doq": Problem("\(quoted(scheme + "://")): DNS over QUIC is not spoken here; give \"tls://HOST\"")
        default:
            Problem(
                Given.text(scheme + "://").shown,
                expected: "ADDRESS, \"tcp://ADDRESS\", \"tls://HOST\", \"https://HOST/PATH\" or \"sdns://STAMP\"")
        }
    }
}
