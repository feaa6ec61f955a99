public import Base
public import DNSWire

/// The encrypted ways to ask this daemon, as clients discover them (RFC 9461, RFC 9462): one SVCB record each, at
/// `_dns.resolver.arpa`, and at `_dns.` before the name in the daemon's certificate.
public final class Designation: Sendable {
    /// Where SVCB records stand.
    let owners: [Name]
    private let records: [[UInt8]]

    /// The name at which a client asks that knows only the resolver's address (RFC 9462 §4).
    public static let unknownResolver = Name("_dns.resolver.arpa")!
    /// In seconds.
    private static let ttl: UInt32 = 300

    /// - Parameters:
    ///   - name: The one in the certificate.
    ///   - doors: The preferred one first.
    ///   - path: Where DNS over HTTPS is served.
    public init(name: Name, _ doors: [Door], path: String) {
        owners = [Self.unknownResolver] + [Name("_dns.\(name)")].compactMap(\.self)
        records = doors.enumerated().map { place, door in
            Answer.serviceData(
                priority: UInt16(place + 1), target: name,
                alpn: [door.isHTTPS ? ApplicationProtocol.http2 : ApplicationProtocol.dnsOverTLS],
                port: door.port == (door.isHTTPS ? 443 : 853) ? nil : door.port,
                dohPath: door.isHTTPS ? path + "{?dns}" : nil, hints: door.addresses)
        }
    }

    /// What a question for SVCB at one of the ``owners`` gets.
    func answer(_ name: Name) -> Answer { .services(name, records, ttl: Self.ttl) }

    /// A port at which the daemon answers.
    public struct Door: Sendable, Equatable {
        /// DNS over HTTPS; else DNS over TLS.
        public let isHTTPS: Bool
        public let port: UInt16
        /// Where it is, as far as that is known.
        public let addresses: [IPAddress]

        public init(isHTTPS: Bool, port: UInt16, addresses: [IPAddress]) {
            (self.isHTTPS, self.port, self.addresses) = (isHTTPS, port, addresses)
        }

        /// One for each port of some addresses; none where the system is yet to choose it.
        public static func all(_ endpoints: [Endpoint], isHTTPS: Bool) -> [Door] {
            var ports: [UInt16] = []
            for endpoint in endpoints where endpoint.port != 0 && !ports.contains(endpoint.port) {
                ports.append(endpoint.port)
            }
            return ports.map { port in
                let addresses = endpoints.filter { $0.port == port }.map(\.address)
                // Where it listens at all addresses, or at the client's own, the client has to know better.
                let isSaid = addresses.allSatisfy { !$0.isUnspecified && !$0.isLoopback }
                return Door(isHTTPS: isHTTPS, port: port, addresses: isSaid ? addresses : [])
            }
        }
    }
}
