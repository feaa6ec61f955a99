public import Base
public import DNSWire

/// The encrypted ways to ask this daemon, as clients discover them (RFC 9461, RFC 9462): one SVCB record each, at
/// `_dns.resolver.arpa`, and at `_dns.` before the name in the daemon's certificate.
public final class Designation: Sendable {
    /// The owner names of the SVCB records; they have no records of other types.
    let owners: [Name]
    private let records: [[UInt8]]

    /// The name that a client asks for when it knows only the resolver's address (RFC 9462 §4).
    public static let unknownResolver = Name("_dns.resolver.arpa")!
    /// The TTL of the records, and of the absence of others, in seconds.
    private static let ttl: UInt32 = 300

    /// - Parameters:
    ///   - name: The name in the certificate.
    ///   - endpoints: The daemon's listeners, the preferred listener first.
    ///   - path: The path of DNS over HTTPS.
    public init(name: Name, _ endpoints: [Listener], path: String) {
        owners = [Self.unknownResolver] + [Name("_dns.\(name)")].compactMap(\.self)
        records = endpoints.enumerated().map { index, endpoint in
            Answer.serviceData(
                priority: UInt16(index + 1), target: name,
                alpn: [endpoint.isHTTPS ? ApplicationProtocol.http2 : ApplicationProtocol.dnsOverTLS],
                port: endpoint.port == (endpoint.isHTTPS ? 443 : 853) ? nil : endpoint.port,
                dohPath: endpoint.isHTTPS ? path + "{?dns}" : nil, hints: endpoint.addresses)
        }
    }

    /// The answer to a question at one of the ``owners``. NXDOMAIN for one type would deny the records, too (RFC 8020).
    func answer(_ name: Name, _ type: RecordType) -> Answer {
        type == .svcb
            ? .services(name, records, ttl: Self.ttl) : .noData(name, type: type, negativeTTL: Self.ttl)
    }

    /// A port at which the daemon answers.
    public struct Listener: Sendable, Equatable {
        /// Whether the port answers DNS over HTTPS; else it answers DNS over TLS.
        public let isHTTPS: Bool
        public let port: UInt16
        /// The listener's addresses, as far as they are known.
        public let addresses: [IPAddress]

        /// One listener for each port of these endpoints; no listener for a port that the system has yet to choose.
        public static func all(_ endpoints: [Endpoint], isHTTPS: Bool) -> [Listener] {
            var ports: [UInt16] = []
            for endpoint in endpoints where endpoint.port != 0 && !ports.contains(endpoint.port) {
                ports.append(endpoint.port)
            }
            return ports.map { port in
                let addresses = endpoints.filter { $0.port == port }.map(\.address)
                // If a listener has all addresses, or loopback, the record gives none: the client must know an address.
                let isReachable = addresses.allSatisfy { !$0.isUnspecified && !$0.isLoopback }
                return Listener(isHTTPS: isHTTPS, port: port, addresses: isReachable ? addresses : [])
            }
        }
    }
}
