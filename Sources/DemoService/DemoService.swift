public import Base
internal import Cryptography
internal import Streams
import Synchronization
internal import Transport

/// An HTTPDNS service on this machine's loopback, with a resolver for DNS over TLS and DNS over HTTPS, for
/// demonstrations and tests of the daemon. A service owns its ports, a queue, a random account and a certificate made
/// at its start, and serves until ``stop(_:)``.
public final class DemoService: Sendable {
    public let account: DemoAccount
    /// The endpoint for aes and des.
    public let http: Endpoint
    /// The endpoint for https.
    public let https: Endpoint
    /// The endpoint for DNS over TLS.
    public let dnsOverTLS: Endpoint
    /// The endpoint for DNS over HTTPS, at ``dnsOverHTTPSPath``.
    public let dnsOverHTTPS: Endpoint
    public static let dnsOverHTTPSPath = DNSOverHTTP.path.description
    /// The certificate that a client of the encrypted endpoints must trust. It is for 127.0.0.1 and valid for ``days``.
    public let certificatePEM: [UInt8]
    /// The private key of the certificate, with which the demo's daemon serves its own clients too.
    public let keyPEM: [UInt8]

    /// The certificate's validity in days, which is longer than any demonstration.
    public static let days = 30

    private let loop: EventLoop
    private let broken: Broken

    /// Whether the account's service fails.
    private final class Broken: Sendable {
        let value: Atomic<Bool>
        init(_ value: Bool) { self.value = Atomic(value) }
    }

    /// The ports of a demonstration, which are the same each time.
    public static let usualPorts: [UInt16] = [5342, 5343, 5344, 5345]

    /// Starts the service on ports of 127.0.0.1.
    /// - Parameters:
    ///   - ports: The ports for aes and des, https, DNS over TLS and DNS over HTTPS. A free port replaces each port
    ///     that is in use or missing.
    ///   - isBroken: Whether the account's service closes each connection, until ``mend()``.
    public init(ports: [UInt16] = [], isBroken: Bool = false) throws {
        func port(_ index: Int) -> UInt16 { index < ports.count ? ports[index] : 0 }
        let broken = Broken(isBroken)
        self.broken = broken
        let address = IPAddress.v4(127, 0, 0, 1)
        let account = DemoAccount.random()
        let certificate = try SelfSignedCertificate.make(names: [], addresses: [address], days: Self.days)
        let engine = try ServiceEngine(account, addresses: [address])
        func context(_ applicationProtocol: String) throws -> TLSServerContext {
            try TLSServerContext(
                certificatePEM: certificate.certificatePEM, keyPEM: certificate.keyPEM, protocols: [applicationProtocol]
            )
        }
        loop = try EventLoop(label: "httpdnsd.demo")
        let service = DemoServer(loop: loop) { broken.value.load(ordering: .relaxed) }
        let server = DemoServer(loop: loop)
        http = try service.listen(on: address, port(0), nil) {
            engine.conversation(isSecure: false, client: $0, send: $1)
        }
        https = try service.listen(on: address, port(1), context(ApplicationProtocol.http1)) {
            engine.conversation(isSecure: true, client: $0, send: $1)
        }
        dnsOverTLS = try server.listen(on: address, port(2), context(ApplicationProtocol.dnsOverTLS)) {
            DNSConversation(ApplicationProtocol.dnsOverTLS, send: $1)
        }
        dnsOverHTTPS = try server.listen(on: address, port(3), context(ApplicationProtocol.http2)) {
            DNSConversation(ApplicationProtocol.http2, send: $1)
        }
        self.account = account
        (certificatePEM, keyPEM) = (certificate.certificatePEM, certificate.keyPEM)
        loop.start()
    }

    /// Makes the account's service answer.
    public func mend() { broken.value.store(false, ordering: .relaxed) }

    /// Ends all connections and frees the ports. To be called once.
    /// - Parameter stopped: Called on the service's queue after that.
    public func stop(_ stopped: @escaping @Sendable () -> Void = {}) { loop.stop(stopped) }
}
