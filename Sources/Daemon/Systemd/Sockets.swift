import Base
import CSystemd
import Configuration
import Counters
import Log
import Transport

/// The listening sockets: sockets from the service manager (sd_listen_fds(3)), else bound here.
struct Sockets {
    var datagrams: [DatagramSocket] = []
    private var streams: [Tally.Transport: [StreamListener]] = [:]
    private var areHandedOver = false
    /// Addresses that cannot be bound, and that the settings do not name, or beside sockets that were handed over.
    private(set) var leftOut: [SystemError] = []

    /// - Parameters:
    ///   - workers: UDP sockets for each address.
    ///   - names: The names of the sockets from the service manager, between colons (`LISTEN_FDNAMES`).
    static func open(
        _ listen: Settings.Listen, workers: Int, names: String?
    ) throws(SystemError) -> Sockets {
        var sockets = try handedOver(names)
        // Sockets for TLS or HTTPS alone do not replace listen.addresses.
        guard sockets.datagrams.isEmpty, sockets.streams[.tcp] == nil else { return sockets }
        for kind in kinds where !sockets.areHandedOver {
            for address in listen[keyPath: kind.addresses] {
                try sockets.bind(address, kind.transport, listen, workers)
            }
        }
        for address in listen.addresses {
            do throws(SystemError) {
                try sockets.bind(address, .tcp, listen, workers)
            } catch {
                // A machine without IPv6 has no [::1]. That is no error in settings which do not name it.
                let isNeedless =
                    error.isAddressMissing && !sockets.datagrams.isEmpty
                    && listen.addresses == Settings.Listen.standardAddresses
                // Sockets that were handed over are served, but for an address that may come a moment later: the service
                // manager then starts the daemon again.
                guard sockets.areHandedOver && !error.isAddressMissing || isNeedless else { throw error }
                sockets.leftOut.append(error)
            }
        }
        return sockets
    }

    /// Why the sockets cannot be bound, and which keys name them.
    static func words(_ error: SystemError) -> String {
        error.isAddressMissing
            ? "\(error.explained); listen.addresses, tls and https name those" : error.explainedOfSockets
    }

    /// Binds an address, and `0.0.0.0` beside `[::]`; another program may have the port at one IPv4 address.
    private mutating func bind(
        _ address: Endpoint, _ transport: Tally.Transport, _ listen: Settings.Listen, _ workers: Int
    ) throws(SystemError) {
        let port = try bind(address, transport, workers)
        guard var ipv4 = listen.alsoIPv4(address) else { return }
        ipv4.port = port
        do throws(SystemError) { _ = try bind(ipv4, transport, workers) } catch { leftOut.append(error) }
    }

    /// A transport on one address, and UDP beside TCP.
    /// - Returns: The port; with port 0 UDP gets the port that the system chose for TCP.
    private mutating func bind(
        _ address: Endpoint, _ transport: Tally.Transport, _ workers: Int
    ) throws(SystemError) -> UInt16 {
        let stream = try StreamListener.listen(address)
        var bound = address
        bound.port = stream.local.port
        if transport == .tcp { datagrams += try DatagramSocket.bind(bound, count: workers) }
        streams[transport, default: []].append(stream)
        return bound.port
    }

    /// The addresses of the listeners.
    var endpoints: [Endpoint] {
        let all = datagramEndpoints + Tally.Transport.allCases.flatMap(endpoints)
        return all.eachOnce
    }

    /// The addresses of the listeners over UDP.
    var datagramEndpoints: [Endpoint] { datagrams.flatMap(\.endpoints) }

    /// The addresses of the listeners of one transport with connections.
    func endpoints(_ transport: Tally.Transport) -> [Endpoint] { streams[transport, default: []].flatMap(\.endpoints) }

    /// Settings with the real addresses of the sockets for TLS and HTTPS, for the designation: the system may have
    /// chosen the port, and the service manager may have passed the sockets.
    func applied(to settings: Settings) -> Settings {
        var settings = settings
        for kind in Self.kinds { settings.listen[keyPath: kind.addresses] = endpoints(kind.transport) }
        return settings
    }

    /// Where clients come in; TCP even if it has no sockets.
    func streamListeners(_ certificate: CertificateFiles.Prepared?) throws(StartFailure) -> [StreamServer.Listeners] {
        try Tally.Transport.allCases.filter { $0 == .tcp || !endpoints($0).isEmpty }.map {
            transport throws(StartFailure) in
            let certificate = certificate?.contexts[transport]
            if transport.isEncrypted, certificate == nil { throw Self.withoutCertificate(endpoints(transport)[0]) }
            return StreamServer.Listeners(
                transport: transport, listeners: streams[transport, default: []], certificate: certificate)
        }
    }

    /// The configured addresses without both a UDP and a TCP socket from the service manager. None of the standard
    /// addresses is reported.
    static func missing(_ wanted: [Endpoint], of datagrams: [Endpoint], _ streams: [Endpoint]) -> [Endpoint] {
        guard wanted != Settings.Listen.standardAddresses else { return [] }
        return wanted.filter { !missing([$0], of: datagrams).isEmpty || !missing([$0], of: streams).isEmpty }
    }

    /// The configured addresses without a socket among these, which are of one kind.
    static func missing(_ wanted: [Endpoint], of sockets: [Endpoint]) -> [Endpoint] {
        wanted.filter { address in
            !sockets.contains { socket in
                let isAny = socket.address.isUnspecified && socket.address.isIPv4 == address.address.isIPv4
                return socket.port == address.port && (isAny || socket.address == address.address)
            }
        }
    }

    /// The addresses without sockets from the service manager, in words.
    func missing(_ listen: Settings.Listen) -> [String] {
        let notBound = leftOut.map { "no question comes there: \($0.explainedOfSockets)" }
        guard areHandedOver else { return notBound }
        let others = listen.addresses.filter { address in !leftOut.contains { $0.subject == "\(address)" } }
        return notBound.map { "\($0); listen.addresses may name another address or port" }
            + Self.missing(others, of: datagramEndpoints, endpoints(.tcp)).map(Report.missing)
            + Self.kinds.flatMap { kind in
                Self.missing(listen[keyPath: kind.addresses], of: endpoints(kind.transport)).map { address in
                    kind.missing(address, UnitState(kind.unit, address))
                }
            }
    }

    /// The addresses for which this machine's service manager would pass no socket, in words; none: it cannot be asked,
    /// or has no such unit.
    static func missingUnderSystemd(_ listen: Settings.Listen) -> [String] {
        guard let bus = SystemBus(), let sockets = listened(by: "httpdnsd_2esocket", bus) else { return [] }
        return missing(listen.addresses, of: addresses("Datagram", sockets), addresses("Stream", sockets))
            .map(Report.missing)
            + kinds.flatMap { kind in
                listen[keyPath: kind.addresses].compactMap { address in
                    let state = UnitState(kind.unit, address, bus)
                    return state == .enabled(isListed: true) ? nil : kind.missing(address, state)
                }
            }
    }

    /// The addresses that a socket unit lists; nil if there is no such unit.
    private static func listened(by unit: String, _ bus: borrowing SystemBus) -> [[SystemBus.Value]]? {
        guard bus.value("LoadState", of: object(unit, "Unit"), "s") == .text("loaded") else { return nil }
        return bus.list("Listen", of: object(unit, "Socket"), "ss")
    }

    private static func object(_ unit: String, _ interface: String) -> SystemBus.Object {
        let service = "org.freedesktop.systemd1"
        return SystemBus.Object(
            service: service, path: "/org/freedesktop/systemd1/unit/\(unit)", interface: "\(service).\(interface)")
    }

    /// The state of a socket unit that explains why no question comes.
    enum UnitState: Equatable {
        /// systemd cannot be asked: the system bus serves no dynamic user of a unit.
        case unknown
        /// There is no such unit.
        case absent
        case disabled
        case failed
        /// - Parameter isListed: Whether the unit lists the address in question.
        case enabled(isListed: Bool)

        fileprivate init(_ unit: String, _ address: Endpoint) {
            if let bus = SystemBus() { self.init(unit, address, bus) } else { self = .unknown }
        }

        /// - Parameters:
        ///   - unit: As written in the path of its object.
        ///   - address: An address without a socket.
        fileprivate init(_ unit: String, _ address: Endpoint, _ bus: borrowing SystemBus) {
            guard let sockets = Sockets.listened(by: unit, bus) else {
                // The bus learns the user only after it was opened.
                let isAbsent = bus.value("LoadState", of: Sockets.object(unit, "Unit"), "s") == .text("not-found")
                self = isAbsent ? .absent : .unknown
                return
            }
            let unitFile = bus.value("UnitFileState", of: Sockets.object(unit, "Unit"), "s")
            let state = bus.value("ActiveState", of: Sockets.object(unit, "Unit"), "s")
            let isActive = state == .text("active")
            if state == .text("failed") {
                self = .failed
            } else if unitFile == .text("disabled"), !isActive {
                self = .disabled
            } else {
                self = .enabled(isListed: Sockets.missing([address], of: Sockets.addresses("Stream", sockets)).isEmpty)
            }
        }
    }

    private static func addresses(_ kind: String, _ sockets: [[SystemBus.Value]]) -> [Endpoint] {
        sockets.compactMap { socket in
            guard socket[0] == .text(kind), case .text(let address) = socket[1] else { return nil }
            return Endpoint(address)
        }
    }

    /// Throws if this machine's service manager would pass sockets for DNS over TLS or HTTPS, and the settings have no
    /// certificate.
    static func checkCertificateUnderSystemd(_ listen: Settings.Listen) throws(StartFailure) {
        guard listen.certificateFile.isEmpty, let bus = SystemBus() else { return }
        for kind in kinds {
            guard let sockets = listened(by: kind.unit, bus), let address = addresses("Stream", sockets).first
            else { continue }
            if case .enabled = UnitState(kind.unit, address, bus) { throw withoutCertificate(address) }
        }
    }

    /// The failure if sockets for DNS over TLS or HTTPS are passed without a certificate in the settings.
    private static func withoutCertificate(_ address: Endpoint) -> StartFailure {
        .setting(
            key: "listen.certificateFile",
            "missing; systemd hands over \(address) for TLS: give certificateFile and keyFile, or type "
                + "systemctl disable --now httpdnsd-dot.socket httpdnsd-doh.socket && systemctl restart httpdnsd")
    }

    /// Throws if there are sockets for DNS over TLS or HTTPS that will be passed at the next start as well, and the
    /// settings have no certificate.
    func checkCertificate(_ listen: Settings.Listen) throws(StartFailure) {
        if areHandedOver, listen.certificateFile.isEmpty { _ = try streamListeners(nil) }
    }

    /// A transport with sockets of its own.
    private struct Kind {
        let transport: Tally.Transport
        let addresses: any WritableKeyPath<Settings.Listen, [Endpoint]> & Sendable
        /// The `FileDescriptorName=` of its sockets, and the end of their unit's name.
        let name: String

        /// Its unit, as written in the path of its object.
        var unit: String { "httpdnsd_2d\(name)_2esocket" }

        /// A text for an address without questions, with the command to type.
        func missing(_ address: Endpoint, _ state: UnitState) -> String {
            Sockets.missing("listen.\(transport.rawValue)", address, name, state)
        }
    }

    /// A text for an address for TLS or HTTPS without questions, with the command to type.
    /// - Parameters:
    ///   - key: The key of the settings that names the address.
    ///   - name: The `FileDescriptorName=`, and the end of the unit's name.
    static func missing(_ key: String, _ address: Endpoint, _ name: String, _ state: UnitState) -> String {
        let unit = "httpdnsd-\(name).socket"
        let begin = "\(key) names \(address), which no socket of systemd is for, so no question is answered there: "
        switch state {
        case .unknown:
            return begin + """
                \(unit) with ListenStream=\(address) and FileDescriptorName=\(name) brings one: type systemctl enable \(unit) && \
                systemctl restart httpdnsd
                """
        case .absent:
            return begin + """
                there is no \(unit), which the package brings: write /etc/systemd/system/\(unit) with [Socket], ListenStream=\(address), \
                FileDescriptorName=\(name) and Service=httpdnsd.service, and [Install], WantedBy=httpdnsd.service, then type \
                systemctl daemon-reload && systemctl enable \(unit) && systemctl restart httpdnsd
                """
        case .disabled:
            return begin + "\(unit) is not enabled: type systemctl enable \(unit) && systemctl restart httpdnsd"
        case .failed:
            return begin + "\(unit) has failed: systemctl status \(unit) says why; then type systemctl restart httpdnsd"
        case .enabled(isListed: true):
            return begin + "\(unit) was not open when the daemon started: type systemctl restart httpdnsd"
        case .enabled(isListed: false):
            return begin + """
                add ListenStream=\(address) with `systemctl edit \(unit)`, then type systemctl stop \(unit) && \
                systemctl restart httpdnsd
                """
        }
    }

    /// Any other name means UDP or TCP.
    private static let kinds = [
        Kind(transport: .tls, addresses: \.tls, name: "dot"), Kind(transport: .https, addresses: \.https, name: "doh"),
    ]

    private static func handedOver(_ names: String?) throws(SystemError) -> Sockets {
        var sockets = Sockets()
        // 1: the variables are removed from the environment, so that no child process uses the sockets.
        let count = Environment.variables["LISTEN_FDS"] == nil ? 0 : csd_listen_fds(1)
        guard count >= 0 else { throw SystemError("sd_listen_fds", code: -count) }
        sockets.areHandedOver = count > 0
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

extension SystemError {
    /// Why a socket could not be bound, with a remedy. Without the permission for a port, the error does not show that
    /// another program has it.
    var explainedOfSockets: String {
        guard call == "bind", isDenied, let endpoint = Endpoint(subject) else { return explained }
        let taken = PortUse.isTaken(endpoint) ? "another program has it, ss -lntup says which" : nil
        guard ServiceManager.isPresent else { return taken.map { "\(self): \($0)" } ?? explained }
        return "\(self): " + (taken.map { $0 + "; " } ?? "")
            + "systemd has handed over no socket for it, systemctl status httpdnsd.socket says why"
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

    /// A text for an address without questions.
    static func missing(_ address: Endpoint) -> String {
        """
        listen.addresses names \(address), which httpdnsd.socket does not, so no question is answered there: add \
        ListenDatagram=\(address) and ListenStream=\(address) with `systemctl edit httpdnsd.socket`, then stop httpdnsd.socket and \
        httpdnsd.service and start them
        """
    }
}
