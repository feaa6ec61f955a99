import Base

/// The parts of a server's URL: `SCHEME://HOST[:PORT][PATH][#FRAGMENT]`.
struct ServerURL {
    /// The whole text, for messages.
    private let text: String
    private let scheme: String
    private let host: Server.Host
    private let port: UInt16?
    /// The text between the authority and the fragment.
    private let target: Substring
    private let fragment: Substring?

    /// - Parameter rest: The text after `SCHEME://`.
    init(_ text: String, _ rest: Substring, scheme: String) throws(Problem) {
        (self.text, self.scheme) = (text, scheme)
        let beforeFragment = rest.prefix { $0 != "#" }
        fragment = beforeFragment.endIndex == rest.endIndex ? nil : rest[beforeFragment.endIndex...].dropFirst()
        let authority = beforeFragment.prefix { !"/?{".contains($0) }
        target = beforeFragment[authority.endIndex...]
        guard let read = Authority(authority, allowsZone: true) else {
            throw Self.wrong(authority, fragment, text, scheme)
        }
        (host, port) = (read.host, read.port)
    }

    /// Plain DNS over TCP: `tcp://ADDRESS[:PORT]`.
    func tcp() throws(Problem) -> Server {
        guard case .address = host else { throw wrong("\"tcp://ADDRESS\": a plain server is given by its address") }
        guard target.isEmpty, fragment == nil else { throw wrong("\"tcp://ADDRESS\" alone") }
        return Server(.tcp, host, port: port ?? Server.Kind.tcp.facts.usualPort)
    }

    /// An unencrypted store: `redis://ADDRESS[:PORT]`.
    func redis() throws(Problem) -> Endpoint {
        guard case .address(let address, let zone) = host else {
            throw wrong("\"redis://ADDRESS\": no name is looked up for it")
        }
        guard target.isEmpty, fragment == nil else { throw wrong("\"redis://ADDRESS\" alone") }
        return Endpoint(address, port: port ?? StoreServer.usualPort, zone: zone)
    }

    /// A store over TLS: `tls://HOST[:PORT]`, with addresses if HOST is a name.
    func store() throws(Problem) -> Server {
        guard target.isEmpty else { throw wrong("\"tls://ADDRESS\" without a path") }
        let server = try encrypted(.tls, usualPort: StoreServer.usualPort)
        guard !server.endpoints.isEmpty else {
            throw wrong("the addresses behind \"#\", such as \"#192.0.2.1\": no name is looked up for it")
        }
        return server
    }

    /// DNS over TLS: `tls://HOST[:PORT]`.
    func tls() throws(Problem) -> Server {
        guard target.isEmpty else { throw wrong("\"tls://HOST\" without a path") }
        return try encrypted(.tls)
    }

    /// DNS over HTTPS: `https://HOST[:PORT]/PATH[?QUERY]`, with `{?dns}`, or `{&dns}` after a query, for GET (RFC 8484
    /// §4.1).
    func https() throws(Problem) -> Server {
        guard target.first == "/" else {
            let method = target == "{?dns}" ? "{?dns}" : ""
            let right = text[..<target.startIndex] + "/dns-query" + method + (fragment.map { "#" + $0 } ?? "")
            throw wrong(Given.text(String(right)).shown)
        }
        let path = target.prefix { $0 != "{" }
        let template = Server.Kind.template(path)
        let usesGET = path.endIndex != target.endIndex
        guard !usesGET || target[path.endIndex...] == template else {
            throw wrong("\"https://HOST/PATH\", or \(quoted(template)) alone behind it for GET")
        }
        guard isTarget(path) else { throw wrong("a path as a URL has it, with %XX for other characters") }
        guard path.utf8.count <= ServerText.maximumPathLength else {
            throw wrong("a path of at most \(ServerText.maximumPathLength) octets")
        }
        return try encrypted(.https(path: String(path), usesGET: usesGET))
    }

    private func encrypted(_ kind: Server.Kind, usualPort: UInt16? = nil) throws(Problem) -> Server {
        let port = port ?? usualPort ?? kind.facts.usualPort
        guard let fragment else { return Server(kind, host, port: port) }
        switch host {
        case .address(let own, _):
            if fragment.split(separator: "+").first.flatMap({ IPAddress($0) }) != nil {
                let dialled = try addresses(fragment)
                return Server(kind, host, port: port, addresses: dialled == [own] ? [] : dialled)
            }
            guard let name = hostName(fragment) else {
                throw wrong(
                    "behind \"#\" the name that the certificate of this address must have, or the address to dial in its place"
                )
            }
            return Server(kind, host, port: port, certificateName: name)
        case .name:
            return Server(kind, host, port: port, addresses: try addresses(fragment))
        }
    }

    /// The addresses to dial for a name: `ADDRESS+ADDRESS`.
    private func addresses(_ text: Substring) throws(Problem) -> [IPAddress] {
        var addresses: [IPAddress] = []
        for word in text.split(separator: "+", omittingEmptySubsequences: false) {
            guard let address = IPAddress(word) else {
                throw wrong(
                    "behind \"#\" the addresses of this name with \"+\" between them, such as "
                        + "\"#192.0.2.1+2001:db8::1\"")
            }
            guard !addresses.contains(address) else { throw Problem("\(address) is listed twice; give it once") }
            addresses.append(address)
        }
        guard addresses.count <= ServerText.maximumAddresses else {
            throw Problem("\(addresses.count) addresses of a server; give at most \(ServerText.maximumAddresses)")
        }
        return addresses
    }

    private func wrong(_ expected: String) -> Problem { Problem(Given.text(text).shown, expected: expected) }

    /// The error for an invalid authority, with the right text if the intended one is recognised.
    private static func wrong(_ authority: Substring, _ fragment: Substring?, _ text: String, _ scheme: String)
        -> Problem
    {
        let shown = Given.text(text).shown
        let end = fragment.map { "#" + $0 } ?? ""
        if let spelling = ServerText.spelling(authority + end) {
            let server = spelling.text.replacing("tls://", with: "")
            let right = ServerText.Spelling(text: "\(scheme)://\(server)", device: spelling.device)
            return Problem(shown, expected: right.words)
        }
        if authority.contains("@") {
            return Problem("what stands before \"@\" would be sent to nobody; give \"\(scheme)://HOST\" without it")
        }
        if let address = IPAddress(authority), !address.isIPv4 {
            return Problem(shown, expected: "brackets around the address, \(quoted("\(scheme)://[\(address)]"))")
        }
        if authority.hasSuffix(":0") {
            return Problem(shown, expected: "a port of 1 to 65535 behind the host, or none")
        }
        return Problem(
            shown, expected: "a host name of letters, digits and \"-\", or an address, behind \"://\"")
    }
}
