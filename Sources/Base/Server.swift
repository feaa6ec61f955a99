/// One server of a group and its protocol: the value of an entry of `servers`. A server is identified by this value,
/// not by its index in a list.
///
/// The value refers to shared, immutable storage, so lists of servers are copied and compared cheaply.
public struct Server: Hashable, Sendable {
    private let form: Form

    /// The protocol of a server.
    public enum Kind: Hashable, Sendable {
        /// DNS over UDP, and over TCP for answers that do not fit (RFC 1035 §4.2).
        case plain
        /// Only DNS over TCP, many questions on a connection (RFC 7766).
        case tcp
        /// DNS over TLS (RFC 7858).
        case tls
        /// DNS over HTTPS (RFC 8484). The path begins with `/`; `usesGET` means GET instead of POST.
        case https(path: String, usesGET: Bool)
        /// HTTPDNS, by the account of the server's group.
        case account
    }

    /// The part of the server's text that names it: an address with its port, or a host name.
    public enum Host: Hashable, Sendable {
        case address(IPAddress, Zone?)
        /// The name in lower case.
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
        let isOnLoopback: Bool
        let exposure: Exposure

        init(
            _ kind: Kind, _ host: Host, _ port: UInt16, _ addresses: [IPAddress], _ certificateName: String?,
            _ hashes: [[UInt8]]
        ) {
            (self.kind, self.host, self.port, self.addresses) = (kind, host, port, addresses)
            (self.certificateName, self.hashes) = (certificateName, hashes)
            switch host {
            case .address(let address, let zone) where addresses.isEmpty:
                endpoints = [Endpoint(address, port: port, zone: zone)]
            case .address, .name: endpoints = addresses.map { Endpoint($0, port: port) }
            }
            isOnLoopback = !endpoints.isEmpty && endpoints.allSatisfy(\.address.isLoopback)
            exposure = kind.facts.isEncrypted || kind == .account ? .encrypted : isOnLoopback ? .loopback : .clear
        }
    }

    /// - Parameters:
    ///   - addresses: The addresses to dial, in order; empty: the host's name is looked up, or its address is dialled.
    ///   - certificateName: The name in the certificate of a host given by its address; nil: that address.
    ///   - hashes: SHA-256 digests of the signed parts of certificates, one of which must be in the chain (DNS stamps);
    ///     empty: any chain that verifies is accepted.
    public init(
        _ kind: Kind, _ host: Host, port: UInt16, addresses: [IPAddress] = [], certificateName: String? = nil,
        hashes: [[UInt8]] = []
    ) {
        form = Form(kind, host, port, addresses, certificateName, hashes)
    }

    /// A server at an address, by a protocol without names.
    public init(_ endpoint: Endpoint, _ kind: Kind = .plain) {
        self.init(kind, .address(endpoint.address, endpoint.zone), port: endpoint.port)
    }

    public var kind: Kind { form.kind }
    public var host: Host { form.host }
    public var port: UInt16 { form.port }
    public var addresses: [IPAddress] { form.addresses }
    public var certificateName: String? { form.certificateName }
    public var hashes: [[UInt8]] { form.hashes }

    /// Whether the server's protocol always uses TLS. False for an account; ``exposure`` covers accounts, too.
    public var isEncrypted: Bool { kind.facts.isEncrypted }

    /// The observers that can read a question on its way to the server.
    public var exposure: Exposure { form.exposure }

    /// Whether all addresses to dial are loopback addresses.
    public var isOnLoopback: Bool { form.isOnLoopback }

    /// Whether all addresses to dial are private, so that no name leaves this network; false while they are unknown.
    public var isOfThisNetwork: Bool { !endpoints.isEmpty && endpoints.allSatisfy(\.address.isPrivate) }

    /// The addresses to dial, in order; empty: the host's name must be looked up first.
    public var endpoints: [Endpoint] { form.endpoints }

    public static func == (a: Server, b: Server) -> Bool {
        a.form === b.form
            || a.host == b.host && a.port == b.port && a.kind == b.kind && a.addresses == b.addresses
                && a.certificateName == b.certificateName && a.hashes == b.hashes
    }

    /// The hash leaves out the fields that rarely differ; the comparison includes these fields.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(host)
        hasher.combine(port)
    }
}

/// The properties of each kind of server.
extension Server.Kind {
    /// The end of the URI template for questions by GET at this path (RFC 8484 §4.1, RFC 6570 §3.2.8, §3.2.9).
    public static func template(_ path: some StringProtocol) -> String { path.contains("?") ? "{&dns}" : "{?dns}" }

    public struct Facts: Sendable {
        /// For example `DNS over TLS`.
        public let title: String
        /// The start of the server's text; nil: the text is only the address.
        public let scheme: String?
        public let usualPort: UInt16
        /// Whether questions to such a server always go through TLS.
        public let isEncrypted: Bool
    }

    public var facts: Facts {
        switch self {
        case .plain: Facts(title: "DNS over UDP and TCP", scheme: nil, usualPort: 53, isEncrypted: false)
        case .tcp: Facts(title: "DNS over TCP", scheme: "tcp", usualPort: 53, isEncrypted: false)
        case .tls: Facts(title: "DNS over TLS", scheme: "tls", usualPort: 853, isEncrypted: true)
        case .https: Facts(title: "DNS over HTTPS", scheme: "https", usualPort: 443, isEncrypted: true)
        case .account: Facts(title: "HTTPDNS", scheme: nil, usualPort: 443, isEncrypted: false)
        }
    }
}

/// The text used in logs, status and metrics: without the part after `#`.
extension Server: CustomStringConvertible {
    /// The text for clients: without the path, which may belong to an account.
    public var publicDescription: String {
        let name =
            switch host {
            case .address(let address, let zone): Endpoint(address, port: port, zone: zone).host
            case .name(let name): name
            }
        guard let scheme = kind.facts.scheme else { return "\(name):\(port)" }
        return scheme + "://" + (port == kind.facts.usualPort ? name : "\(name):\(port)")
    }

    public var description: String {
        guard case .https(let path, let usesGET) = kind else { return publicDescription }
        return publicDescription + path + (usesGET ? Kind.template(path) : "")
    }
}
