import Base

/// DNS stamps (draft-denis-dns-stamps-01) have the form `sdns://` and base64url text. The text encodes an octet for the
/// kind of server, eight octets of properties, and the fields of that kind.
///
/// The properties (no logs, no filter, DNSSEC) and the bootstrap resolvers are ignored, as the draft permits.
enum Stamp {
    private static let plain: UInt8 = 0
    private static let https: UInt8 = 2
    private static let tls: UInt8 = 3
    private static let propertyCount = 8
    /// Octets of a SHA-256 digest.
    private static let hashLength = 32

    /// - Parameter text: The text after `sdns://`.
    static func read(_ text: Substring) throws(Problem) -> Server {
        guard let octets = Base64.url.decode(text.utf8) else {
            throw Problem("a stamp is not right that is no base64url; give it whole, as \"sdns://STAMP\"")
        }
        var reader = OctetReader(octets)
        guard let kind = reader.take(1)?.first else { throw cut }
        guard [plain, https, tls].contains(kind) else {
            let name = names[kind] ?? "an unknown kind (\(kind))"
            throw Problem(
                "a stamp of \(name), which is not spoken here; give one of plain DNS, DNS over TLS or DNS over HTTPS")
        }
        guard reader.take(propertyCount) != nil else { throw cut }
        let server = kind == plain ? try readPlain(&reader) : try readEncrypted(&reader, kind)
        guard reader.rest.isEmpty else { throw Problem("a stamp with more behind its end is not right; give it whole") }
        return server
    }

    /// The stamp of an encrypted server with certificate digests, which no other form of text can express.
    static func text(of server: Server) -> String {
        var octets: [UInt8] = []
        var path: String?
        if case .https(let text, _) = server.kind { path = text }
        octets.append(path == nil ? tls : https)
        octets += [UInt8](repeating: 0, count: propertyCount)
        // The port follows the address. Without an address, the port is alone.
        let dialled = server.addresses.first.map { bracketed($0) } ?? ""
        append("\(dialled):\(server.port)".utf8, to: &octets)
        for (index, hash) in server.hashes.enumerated() {
            append(hash, to: &octets, isLast: index == server.hashes.count - 1)
        }
        switch server.host {
        case .name(let name): append(name.utf8, to: &octets)
        case .address(let address, _): append(bracketed(address).utf8, to: &octets)
        }
        if let path { append(path.utf8, to: &octets) }
        return "sdns://" + Base64.url.encode(octets)
    }

    private static func readPlain(_ reader: inout OctetReader) throws(Problem) -> Server {
        guard let text = reader.text() else { throw cut }
        guard let authority = Authority(text[...], allowsZone: true), case .address = authority.host else {
            throw Problem(
                "a stamp whose server is \(Given.text(text).shown) is not right; give one with an address, one of IPv6 in "
                    + "brackets")
        }
        return Server(.plain, authority.host, port: authority.port ?? 53)
    }

    private static func readEncrypted(_ reader: inout OctetReader, _ kind: UInt8) throws(Problem) -> Server {
        guard let dialled = reader.text(), let hashes = reader.set(), let host = reader.text() else { throw cut }
        guard let name = Authority(host[...]) else {
            throw Problem(
                "a stamp whose host is \(Given.text(host).shown) is not right; give one with a host name in its xn-- form"
            )
        }
        let (address, port) = try addressAndPort(dialled)
        guard port == nil || name.port == nil || port == name.port else {
            throw Problem(
                "a stamp with two ports, \(dialled) and \(host), is not right; give one that agrees with itself")
        }
        var addresses = address.map { [$0] } ?? []
        if case .address(let own, _) = name.host, addresses == [own] { addresses = [] }
        let usual: UInt16 = kind == tls ? 853 : 443
        let form: Server.Kind = kind == tls ? .tls : .https(path: try path(&reader), usesGET: false)
        if !reader.rest.isEmpty, reader.set() == nil { throw cut }
        return Server(
            form, name.host, port: name.port ?? port ?? usual, addresses: addresses, hashes: try digests(hashes))
    }

    /// The address field: an address, a port after a colon, both, or neither.
    private static func addressAndPort(_ text: String) throws(Problem) -> (address: IPAddress?, port: UInt16?) {
        if text.isEmpty { return (nil, nil) }
        if text.first == ":", let authority = Authority("0.0.0.0" + text) { return (nil, authority.port) }
        guard let authority = Authority(text[...]), case .address(let address, _) = authority.host else {
            throw Problem(
                "a stamp that is dialled at \(Given.text(text).shown) is not right; give one with an address, one of IPv6 "
                    + "in brackets")
        }
        return (address, authority.port)
    }

    private static func path(_ reader: inout OctetReader) throws(Problem) -> String {
        guard let path = reader.text() else { throw cut }
        guard path.first == "/", isTarget(path[...]) else {
            throw Problem(
                "a stamp whose path is \(Given.text(path).shown) is not right; give one such as \"/dns-query\"")
        }
        return path
    }

    private static func digests(_ set: [[UInt8]]) throws(Problem) -> [[UInt8]] {
        // A set has at least one element, so an empty element means an empty set.
        if set == [[]] { return [] }
        guard set.allSatisfy({ $0.count == hashLength }) else {
            throw Problem("a stamp with a hash that has not \(hashLength) octets is not right; give one with SHA-256")
        }
        guard set.count <= ServerText.maximumAddresses else {
            throw Problem("a stamp with \(set.count) hashes; give one with at most \(ServerText.maximumAddresses)")
        }
        return set
    }

    private static let cut = Problem("a stamp that ends too early is not right; give it whole")

    /// The names of the kinds of server that are not supported.
    private static let names: [UInt8: String] = [
        0x01: "DNSCrypt", 0x04: "DNS over QUIC", 0x05: "an Oblivious DoH target", 0x81: "a DNSCrypt relay",
        0x85: "an Oblivious DoH relay",
    ]

    private static func bracketed(_ address: IPAddress) -> String { address.isIPv4 ? "\(address)" : "[\(address)]" }

    /// - Parameter isLast: Whether the element is the last of its set; otherwise the length's highest bit is set.
    private static func append(_ element: some Collection<UInt8>, to octets: inout [UInt8], isLast: Bool = true) {
        octets.append(UInt8(element.count) | (isLast ? 0 : 0x80))
        octets += element
    }
}

extension OctetReader {
    /// `LP(x)`: a length of one octet, then that many octets.
    fileprivate mutating func text() -> String? {
        guard let length = integer(1), let text = take(Int(length)) else { return nil }
        return String(decoding: text, as: UTF8.self)
    }

    /// `VLP(x, …)`: the highest bit of a length is set if another element follows.
    fileprivate mutating func set() -> [[UInt8]]? {
        var elements: [[UInt8]] = []
        while let length = integer(1), let element = take(Int(length & 0x7F)) {
            elements.append(Array(element))
            if length & 0x80 == 0 { return elements }
        }
        return nil
    }
}
