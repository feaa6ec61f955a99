import Base
import CSystemd
import Configuration
import Log
import Logging
import Transport

/// The listening sockets: those handed over by the service manager (sd_listen_fds(3)), else bound here.
struct Sockets {
    var datagrams: [DatagramSocket] = []
    var streams: [StreamListener] = []
    private var areHandedOver = false

    /// - Parameter workers: UDP sockets for each address.
    static func open(_ addresses: [Endpoint], workers: Int) throws(SystemError) -> Sockets {
        let handed = try handedOver()
        guard handed.datagrams.isEmpty, handed.streams.isEmpty else { return handed }
        var sockets = Sockets()
        for address in addresses {
            let stream = try StreamListener.listen(address)
            sockets.streams.append(stream)
            // With port 0 both get the port that the system chose for TCP.
            let bound = Endpoint(address.address, port: stream.local.port)
            sockets.datagrams += try DatagramSocket.bind(bound, count: workers)
        }
        return sockets
    }

    var endpoints: [Endpoint] {
        var all: [Endpoint] = []
        for endpoint in datagrams.map(\.local) + streams.map(\.local) where !all.contains(endpoint) {
            all.append(endpoint)
        }
        return all
    }

    /// The addresses at which no question comes, since the service manager hands sockets over, but not both of theirs. Of the
    /// standard addresses none is missed.
    static func missing(_ wanted: [Endpoint], of datagrams: [Endpoint], _ streams: [Endpoint]) -> [Endpoint] {
        func isThere(_ address: Endpoint, _ sockets: [Endpoint]) -> Bool {
            sockets.contains { socket in
                let isAny = socket.address.isUnspecified && socket.address.isIPv4 == address.address.isIPv4
                return socket.port == address.port && (isAny || socket.address == address.address)
            }
        }
        guard wanted != Settings.Listen.standardAddresses else { return [] }
        return wanted.filter { !isThere($0, datagrams) || !isThere($0, streams) }
    }

    /// Of the sockets that were handed over.
    func missing(_ wanted: [Endpoint]) -> [Endpoint] {
        areHandedOver ? Self.missing(wanted, of: datagrams.map(\.local), streams.map(\.local)) : []
    }

    /// Of those that the service manager of this machine would hand over; none where that cannot be asked, or has no such unit.
    static func missingUnderSystemd(_ wanted: [Endpoint]) -> [Endpoint] {
        let service = "org.freedesktop.systemd1"
        let path = "/org/freedesktop/systemd1/unit/httpdnsd_2esocket"
        func object(_ interface: String) -> SystemBus.Object {
            SystemBus.Object(service: service, path: path, interface: "\(service).\(interface)")
        }
        guard let bus = SystemBus(), bus.value("LoadState", of: object("Unit"), "s") == .text("loaded"),
            let sockets = bus.list("Listen", of: object("Socket"), "ss")
        else { return [] }
        func addresses(_ kind: String) -> [Endpoint] {
            sockets.compactMap { socket in
                guard socket[0] == .text(kind), case .text(let address) = socket[1] else { return nil }
                return Endpoint(address)
            }
        }
        return missing(wanted, of: addresses("Datagram"), addresses("Stream"))
    }

    private static func handedOver() throws(SystemError) -> Sockets {
        var sockets = Sockets()
        sockets.areHandedOver = true
        // 1: the variables are removed from the environment, so that no child process takes the sockets for its own.
        let count = sd_listen_fds(1)
        guard count >= 0 else { throw SystemError("sd_listen_fds", code: -count) }
        for descriptor in SD_LISTEN_FDS_START..<SD_LISTEN_FDS_START + count {
            switch try ListeningSocket.adopt(Descriptor(adopting: descriptor)) {
            case .datagram(let socket): sockets.datagrams.append(socket)
            case .stream(let listener): sockets.streams.append(listener)
            }
        }
        return sockets
    }
}

extension Report {
    func listening(on endpoints: [Endpoint]) {
        let list = endpoints.map(\.description).joined(separator: ", ")
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
