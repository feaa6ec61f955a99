public import Base
public import Cryptography
public import Transport

/// An HTTPDNS service on this machine's loopback, for trying the daemon and for its tests: owns its ports, a queue, a
/// random account and a fresh certificate. It serves until ``stop(_:)``.
public final class DemoService: Sendable {
    public let account: DemoAccount
    /// The endpoint for aes and des.
    public let http: Endpoint
    /// The endpoint for https.
    public let https: Endpoint
    /// The certificate that a client of ``https`` must trust: for 127.0.0.1, valid for ``days``.
    public let certificatePEM: [UInt8]

    /// How many days the certificate is valid: longer than any demonstration.
    public static let days = 30

    private let loop: EventLoop

    /// Starts the service on two free ports of 127.0.0.1.
    /// - Parameter resolver: The DNS resolver asked for names the service does not know by itself; without one they
    ///   have no record.
    public init(resolver: Endpoint? = nil) throws(DemoError) {
        let address = IPAddress.v4(127, 0, 0, 1)
        let account = DemoAccount.random()
        let pem = try Self.certificate(for: address)
        let context: TLSServerContext
        do throws(TLSError) {
            context = try TLSServerContext(certificatePEM: pem.certificatePEM, keyPEM: pem.keyPEM)
        } catch {
            throw .tls(error)
        }
        let (loop, system) = try Self.loop(resolver)
        let engine: ServiceEngine
        do throws(CryptographyError) {
            engine = try ServiceEngine(
                account, addresses: [address], resolve: system.map { system in { system.resolve($0, $1, done: $2) } })
        } catch {
            throw .cryptography(error)
        }
        let server = DemoServer(loop: loop, engine: engine, context: context)
        do throws(SystemError) {
            http = try server.listen(on: address, isSecure: false)
            https = try server.listen(on: address, isSecure: true)
        } catch {
            throw .system(error)
        }
        self.account = account
        self.loop = loop
        certificatePEM = pem.certificatePEM
        loop.start()
    }

    /// Ends all connections and frees the ports; call once.
    /// - Parameter stopped: Called on the service's queue when that is done.
    public func stop(_ stopped: @escaping @Sendable () -> Void = {}) {
        loop.stop(stopped)
    }

    private static func certificate(
        for address: IPAddress
    ) throws(DemoError) -> (certificatePEM: [UInt8], keyPEM: [UInt8]) {
        do throws(CryptographyError) {
            return try SelfSignedCertificate.make(names: [], addresses: [address], days: days)
        } catch {
            throw .cryptography(error)
        }
    }

    private static func loop(_ resolver: Endpoint?) throws(DemoError) -> (EventLoop, SystemResolver?) {
        do throws(SystemError) {
            let loop = try EventLoop(label: "httpdnsd.demo")
            let system = resolver.map { SystemResolver($0, loop: loop) }
            loop.deadlineReached = system.map { system in { system.expire() } }
            return (loop, system)
        } catch {
            throw .system(error)
        }
    }
}

/// Why the demo service cannot start.
public enum DemoError: Error, Equatable, Sendable, CustomStringConvertible {
    case system(SystemError)
    case cryptography(CryptographyError)
    case tls(TLSError)

    public var description: String {
        switch self {
        case .system(let error): error.description
        case .cryptography(let error): error.description
        case .tls(let error): error.description
        }
    }
}
