import Base
import CSystemd
import Log
import Logging
import Transport

/// The listening sockets: those handed over by the service manager (sd_listen_fds(3)), else bound here.
struct Sockets {
    var datagrams: [DatagramSocket] = []
    var streams: [StreamListener] = []

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

    private static func handedOver() throws(SystemError) -> Sockets {
        var sockets = Sockets()
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
}
