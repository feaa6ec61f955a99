import Base
import CSystemd
import Configuration
import Counters
import Log
import Logging
import Transport

/// The listening sockets: those handed over by the service manager (sd_listen_fds(3)), else bound here.
struct Sockets {
    var datagrams: [DatagramSocket] = []
    private var streams: [Tally.Transport: [StreamListener]] = [:]
    private var areHandedOver = false
    /// Addresses that no line of the settings names, and that cannot be had.
    private(set) var leftOut: [SystemError] = []

    /// - Parameters:
    ///   - workers: UDP sockets for each address.
    ///   - names: those of the sockets that were handed over, between colons (`LISTEN_FDNAMES`).
    static func open(
        _ listen: Settings.Listen, workers: Int, names: String?
    ) throws(SystemError) -> Sockets {
        let handed = try handedOver(names)
        guard handed.datagrams.isEmpty, handed.streams.isEmpty else { return handed }
        var sockets = Sockets()
        for kind in kinds {
            for address in listen[keyPath: kind.addresses] {
                let stream = try StreamListener.listen(address)
                sockets.streams[kind.transport, default: []].append(stream)
                sockets.bindIPv4(beside: address, stream.local.port, listen) { sockets, ipv4 throws(SystemError) in
                    sockets.streams[kind.transport, default: []].append(try StreamListener.listen(ipv4))
                }
            }
        }
        for address in listen.addresses {
            do throws(SystemError) {
                let port = try sockets.bind(address, workers)
                sockets.bindIPv4(beside: address, port, listen) { sockets, ipv4 throws(SystemError) in
                    _ = try sockets.bind(ipv4, workers)
                }
            } catch {
                // A machine without IPv6 has no [::1]. That is no mistake in settings which do not name it.
                guard error.isAddressMissing, !sockets.datagrams.isEmpty,
                    listen.addresses == Settings.Listen.standardAddresses
                else { throw error }
                sockets.leftOut.append(error)
            }
        }
        return sockets
    }

    /// Why the sockets cannot be had, and which keys name them.
    static func words(_ error: SystemError) -> String {
        error.isAddressMissing ? "\(error.explained); listen.addresses, tls and https name those" : error.explained
    }

    /// UDP and TCP on one address.
    /// - Returns: the port; with port 0 both get the one that the system chose for TCP.
    private mutating func bind(_ address: Endpoint, _ workers: Int) throws(SystemError) -> UInt16 {
        let stream = try StreamListener.listen(address)
        var bound = address
        bound.port = stream.local.port
        datagrams += try DatagramSocket.bind(bound, count: workers)
        streams[.tcp, default: []].append(stream)
        return bound.port
    }

    /// Binds `0.0.0.0` beside `[::]`; another program may have the port at one IPv4 address.
    private mutating func bindIPv4(
        beside address: Endpoint, _ port: UInt16, _ listen: Settings.Listen,
        _ bind: (inout Sockets, Endpoint) throws(SystemError) -> Void
    ) {
        guard var ipv4 = listen.alsoIPv4(address) else { return }
        ipv4.port = port
        do throws(SystemError) { try bind(&self, ipv4) } catch { leftOut.append(error) }
    }

    /// Where questions come.
    var endpoints: [Endpoint] {
        var all: [Endpoint] = []
        for endpoint in datagrams.map(\.local) + Tally.Transport.allCases.flatMap(endpoints)
        where !all.contains(endpoint) {
            all.append(endpoint)
        }
        return all
    }

    /// Where questions come over one transport with connections.
    func endpoints(_ transport: Tally.Transport) -> [Endpoint] { streams[transport, default: []].map(\.local) }

    /// Settings with the addresses that the sockets for TLS and HTTPS really have, so that clients are told no others: where
    /// the system chose the port, and where the service manager hands sockets over.
    func applied(to settings: Settings) -> Settings {
        var settings = settings
        for kind in Self.kinds { settings.listen[keyPath: kind.addresses] = endpoints(kind.transport) }
        return settings
    }

    /// Where clients come in; TCP even if it has no sockets.
    func doors(_ listen: Settings.Listen) throws(StartFailure) -> [StreamServer.Door] {
        try Tally.Transport.allCases.filter { $0 == .tcp || !endpoints($0).isEmpty }.map {
            transport throws(StartFailure) in
            let certificate = try ServerCertificate.Prepared(listen, transport)
            if transport.isEncrypted, certificate == nil { throw Self.withoutCertificate(endpoints(transport)[0]) }
            return StreamServer.Door(
                transport: transport, listeners: streams[transport, default: []], certificate: certificate)
        }
    }

    /// The addresses at which no question comes, since the service manager hands sockets over, but not both of theirs. Of the
    /// standard addresses none is missed.
    static func missing(_ wanted: [Endpoint], of datagrams: [Endpoint], _ streams: [Endpoint]) -> [Endpoint] {
        guard wanted != Settings.Listen.standardAddresses else { return [] }
        return Set(missing(wanted, of: datagrams) + missing(wanted, of: streams)).sorted {
            wanted.firstIndex(of: $0)! < wanted.firstIndex(of: $1)!
        }
    }

    /// The same for sockets of one kind.
    static func missing(_ wanted: [Endpoint], of sockets: [Endpoint]) -> [Endpoint] {
        wanted.filter { address in
            !sockets.contains { socket in
                let isAny = socket.address.isUnspecified && socket.address.isIPv4 == address.address.isIPv4
                return socket.port == address.port && (isAny || socket.address == address.address)
            }
        }
    }

    /// Of the sockets that were handed over, in words.
    func missing(_ listen: Settings.Listen) -> [String] {
        guard areHandedOver else { return leftOut.map { "no question comes there: \($0.explained)" } }
        return Self.missing(listen.addresses, of: datagrams.map(\.local), endpoints(.tcp)).map(Report.missing)
            + Self.kinds.flatMap { kind in
                Self.missing(listen[keyPath: kind.addresses], of: endpoints(kind.transport)).map(kind.missing)
            }
    }

    /// Of those that the service manager of this machine would hand over, in words; none where that cannot be asked, or has no
    /// such unit.
    static func missingUnderSystemd(_ listen: Settings.Listen) -> [String] {
        guard let bus = SystemBus(), let sockets = listened(by: "httpdnsd_2esocket", bus) else { return [] }
        func addresses(_ kind: String, _ sockets: [[SystemBus.Value]]) -> [Endpoint] {
            sockets.compactMap { socket in
                guard socket[0] == .text(kind), case .text(let address) = socket[1] else { return nil }
                return Endpoint(address)
            }
        }
        return missing(listen.addresses, of: addresses("Datagram", sockets), addresses("Stream", sockets))
            .map(Report.missing)
            + kinds.flatMap { kind in
                let sockets = listened(by: "httpdnsd_2d\(kind.name)_2esocket", bus) ?? []
                return missing(listen[keyPath: kind.addresses], of: addresses("Stream", sockets)).map(kind.missing)
            }
    }

    /// What a unit of sockets lists; nil: there is no such unit.
    private static func listened(by unit: String, _ bus: borrowing SystemBus) -> [[SystemBus.Value]]? {
        let service = "org.freedesktop.systemd1"
        func object(_ interface: String) -> SystemBus.Object {
            SystemBus.Object(
                service: service, path: "/org/freedesktop/systemd1/unit/\(unit)", interface: "\(service).\(interface)")
        }
        guard bus.value("LoadState", of: object("Unit"), "s") == .text("loaded") else { return nil }
        return bus.list("Listen", of: object("Socket"), "ss")
    }

    /// That sockets for DNS over TLS or HTTPS were handed over, and nothing to show on them.
    private static func withoutCertificate(_ address: Endpoint) -> StartFailure {
        .setting(
            key: "listen.certificateFile",
            "missing; systemd hands over \(address) for TLS: give certificateFile and keyFile")
    }

    /// What is served on sockets of its own.
    private struct Kind {
        let transport: Tally.Transport
        let addresses: any WritableKeyPath<Settings.Listen, [Endpoint]> & Sendable
        /// The `FileDescriptorName=` of its sockets, and the end of the name of their unit.
        let name: String

        func missing(_ address: Endpoint) -> String {
            """
            listen.\(transport.rawValue) names \(address), which no socket of systemd is for, so no question is answered there: \
            write /etc/systemd/system/httpdnsd-\(name).socket with [Socket], ListenStream=\(address), \
            FileDescriptorName=\(name) and Service=httpdnsd.service, then stop httpdnsd.socket and httpdnsd.service and start \
            all three
            """
        }
    }

    /// Any other name is for UDP or TCP.
    private static let kinds = [
        Kind(transport: .tls, addresses: \.tls, name: "dot"), Kind(transport: .https, addresses: \.https, name: "doh"),
    ]

    private static func handedOver(_ names: String?) throws(SystemError) -> Sockets {
        var sockets = Sockets()
        sockets.areHandedOver = true
        // 1: the variables are removed from the environment, so that no child process takes the sockets for its own.
        let count = Environment.variables["LISTEN_FDS"] == nil ? 0 : csd_listen_fds(1)
        guard count >= 0 else { throw SystemError("sd_listen_fds", code: -count) }
        let names = names?.split(separator: ":", omittingEmptySubsequences: false) ?? []
        for index in 0..<count {
            let kind = index < names.count ? kinds.first { $0.name == names[Int(index)] } : nil
            switch try ListeningSocket.adopt(Descriptor(adopting: SD_LISTEN_FDS_START + index)) {
            case .datagram(let socket): sockets.datagrams.append(socket)
            case .stream(let listener): sockets.streams[kind?.transport ?? .tcp, default: []].append(listener)
            }
        }
        return sockets
    }
}

extension Report {
    func listening(on sockets: Sockets) {
        let encrypted = Tally.Transport.allCases.filter(\.isEncrypted)
        let list = sockets.endpoints.map { endpoint in
            let transport = encrypted.first { sockets.endpoints($0).contains(endpoint) }
            return (transport.map { "\($0.rawValue)://" } ?? "") + "\(endpoint)"
        }.joined(separator: ", ")
        say(.notice, .started, "listening on \(list)", ["addresses": list])
    }

    /// That no question comes at an address, in words.
    static func missing(_ address: Endpoint) -> String {
        """
        listen.addresses names \(address), which httpdnsd.socket does not, so no question is answered there: add \
        ListenDatagram=\(address) and ListenStream=\(address) with `systemctl edit httpdnsd.socket`, then stop httpdnsd.socket and \
        httpdnsd.service and start them
        """
    }
}
