/// A server that can be asked, and how: what an entry of `servers` stands for. It is known by that alone, not by the place
/// it has in a list.
///
/// A reference to what never changes, so that lists of servers are copied and compared cheaply.
public struct Server: Hashable, Sendable {
    private let form: Form

    /// How a server is asked.
    public enum Kind: Hashable, Sendable {
        /// DNS over UDP, and over TCP for what does not fit (RFC 1035 §4.2).
        case plain
        /// DNS over TCP alone, many questions on a connection (RFC 7766).
        case tcp
        /// DNS over TLS (RFC 7858).
        case tls
        /// DNS over HTTPS (RFC 8484), at a path that begins with `/`; with GET instead of POST.
        case https(path: String, usesGET: Bool)
        /// HTTPDNS, by the account of the server's group.
        case account
    }

    /// What stands for a server in its text.
    public enum Host: Hashable, Sendable {
        case address(IPAddress, Zone?)
        /// In lower case.
        case name(String)
    }

    private final class Form: Sendable {
        let kind: Kind
        let host: Host
        let port: UInt16
        let addresses: [IPAddress]
        let certificateName: String?
        let hashes: [[UInt8]]
        let endpoints: [Endpoint]

        init(
            _ kind: Kind, _ host: Host, _ port: UInt16, _ addresses: [IPAddress], _ certificateName: String?,
            _ hashes: [[UInt8]]
        ) {
            (self.kind, self.host, self.port, self.addresses) = (kind, host, port, addresses)
            (self.certificateName, self.hashes) = (certificateName, hashes)
            switch host {
            case .address(let address, let zone): endpoints = [Endpoint(address, port: port, zone: zone)]
            case .name: endpoints = addresses.map { Endpoint($0, port: port) }
            }
        }
    }

    /// - Parameters:
    ///   - addresses: Where a host that is a name is dialled, in this order; empty: the name is looked up.
    ///   - certificateName: The name that the certificate of a host that is an address must have; nil: that address.
    ///   - hashes: SHA-256 digests of the signed parts of certificates, one of which must be in the chain (DNS stamps);
    ///     empty: any chain that verifies will do.
    public init(
        _ kind: Kind, _ host: Host, port: UInt16, addresses: [IPAddress] = [], certificateName: String? = nil,
        hashes: [[UInt8]] = []
    ) {
        form = Form(kind, host, port, addresses, certificateName, hashes)
    }

    /// A server at an address, asked in a way that knows no names.
    public init(_ endpoint: Endpoint, _ kind: Kind = .plain) {
        self.init(kind, .address(endpoint.address, endpoint.zone), port: endpoint.port)
    }

    public var kind: Kind { form.kind }
    public var host: Host { form.host }
    public var port: UInt16 { form.port }
    public var addresses: [IPAddress] { form.addresses }
    public var certificateName: String? { form.certificateName }
    public var hashes: [[UInt8]] { form.hashes }

    /// Whether nobody on the path can read what it is asked, or answer in its place.
    public var isEncrypted: Bool {
        switch kind {
        case .tls, .https: true
        case .plain, .tcp, .account: false
        }
    }

    /// Where it is dialled, in this order; empty: its name has to be looked up.
    public var endpoints: [Endpoint] { form.endpoints }

    public static func == (a: Server, b: Server) -> Bool {
        a.form === b.form
            || a.host == b.host && a.port == b.port && a.kind == b.kind && a.addresses == b.addresses
                && a.certificateName == b.certificateName && a.hashes == b.hashes
    }

    /// Servers that differ in more than these are few: telling them apart is left to the comparison.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(host)
        hasher.combine(port)
    }
}

/// As logs, status and metrics call it: without what stands behind `#`.
extension Server: CustomStringConvertible {
    public var description: String {
        switch kind {
        case .plain, .account: place
        case .tcp: "tcp://" + place(unless: 53)
        case .tls: "tls://" + place(unless: 853)
        case .https(let path, let usesGET): "https://" + place(unless: 443) + path + (usesGET ? "{?dns}" : "")
        }
    }

    private var place: String {
        switch host {
        case .address(let address, let zone): "\(Endpoint(address, port: port, zone: zone))"
        case .name(let name): "\(name):\(port)"
        }
    }

    private func place(unless usual: UInt16) -> String {
        guard port == usual else { return place }
        switch host {
        case .address(let address, let zone):
            let zone = zone.map { "%\($0)" } ?? ""
            return address.isIPv4 ? "\(address)" : "[\(address)\(zone)]"
        case .name(let name): return name
        }
    }
}
