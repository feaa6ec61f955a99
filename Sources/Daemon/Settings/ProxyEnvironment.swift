import Base

/// The HTTP proxy in the environment. A daemon on a network with a proxy cannot be sure that its own connections reach
/// the service; `httpdns.proxy` sets what follows from that.
///
/// The rules are curl's: `http_proxy` or `https_proxy`, then `all_proxy`, each in lower case first, then in upper case;
/// an empty variable counts as none. `no_proxy` has addresses, networks and names, separated by commas or blanks; a
/// name includes those under it, with or without a leading dot; `*` means all. In addition to curl's rules an entry may
/// end in `:PORT`, as in Go.
struct ProxyEnvironment: Sendable, Equatable {
    /// The value is not stored, since it may contain a password.
    private let http: String?
    private let https: String?
    private let exceptions: [Substring]

    init(_ environment: [String: String]) {
        func firstSet(_ names: [String]) -> String? {
            names.first { environment[$0].map { !$0.isEmpty } ?? false }
        }
        http = firstSet(["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
        https = firstSet(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
        let list = firstSet(["no_proxy", "NO_PROXY"]).flatMap { environment[$0] } ?? ""
        exceptions = list.split { $0 == "," || $0 == " " || $0 == "\t" }
    }

    /// The variable whose proxy applies to this server; nil if none does.
    /// - Parameter serverName: `tls.serverName`; an exception may name it or the address.
    func variable(for server: Endpoint, isSecure: Bool, serverName: String = "") -> String? {
        guard let variable = isSecure ? https : http else { return nil }
        let name = Self.plainName(serverName[...])
        return exceptions.contains { Self.exempts($0, server, name) } ? nil : variable
    }

    private static func exempts(_ entry: Substring, _ server: Endpoint, _ name: String) -> Bool {
        if entry == "*" { return true }
        // Bits of the network's address beyond the prefix are ignored.
        if entry.contains("/") { return Network(around: entry)?.contains(server.address) ?? false }
        if let address = IPAddress(entry) { return address == server.address }
        if entry.first == "[" {
            if let endpoint = Endpoint(entry) { return endpoint == server }
            return IPAddress(entry.dropFirst().dropLast()) == server.address && entry.last == "]"
        }
        var host = entry
        if let colon = entry.lastIndex(of: ":") {
            guard UInt16(entry[entry.index(after: colon)...]) == server.port else { return false }
            host = entry[..<colon]
        }
        if let address = IPAddress(host) { return address == server.address }
        let suffix = plainName(host.first == "." ? host.dropFirst() : host)
        return !suffix.isEmpty && (name == suffix || name.hasSuffix("." + suffix))
    }

    /// The name in lower case, without a final dot.
    private static func plainName(_ name: Substring) -> String {
        (name.last == "." ? name.dropLast() : name).lowercased()
    }
}
