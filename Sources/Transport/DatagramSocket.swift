public import Base
internal import Glibc

/// A bound UDP socket, shared by the listener that reads it and the loop that sends late answers from it; closed with
/// the last reference. Safe to share: the descriptor never changes, and the kernel orders the calls.
public final class DatagramSocket: Sendable {
    /// The bound address and port.
    public let local: Endpoint
    /// The endpoints at which the socket is reached: ``local``, and another one for IPv4 if it is of both families.
    public let endpoints: [Endpoint]
    /// Whether the socket is bound to all addresses, so that each reply must name its source address.
    public let isWildcard: Bool
    let descriptor: Descriptor

    /// Room for a burst while the listener is busy; the kernel lowers the size to net.core.rmem_max and wmem_max.
    private static let bufferSize: Int32 = 1 << 20

    /// Takes over a UDP socket that is bound.
    init(
        _ descriptor: consuming Descriptor, local: Endpoint, endpoints: [Endpoint]? = nil
    ) throws(SystemError) {
        self.local = local
        self.endpoints = endpoints ?? [local]
        isWildcard = local.address.isUnspecified
        self.descriptor = descriptor
        try prepare()
    }

    /// Binds `count` sockets to one address; the kernel spreads the clients over them. With port 0 all sockets get the
    /// port of the first.
    ///
    /// SO_REUSEPORT is set only after the first socket is bound, so a second daemon, even of the same user, gets
    /// "address already in use" instead of half of the queries.
    public static func bind(_ endpoint: Endpoint, count: Int) throws(SystemError) -> [DatagramSocket] {
        var sockets: [DatagramSocket] = []
        var endpoint = endpoint
        while sockets.count < count {
            let descriptor = try Descriptor.socket(endpoint.address.isIPv4 ? AF_INET : AF_INET6, .datagram)
            if !endpoint.address.isIPv4 { try descriptor.setOption(Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1) }
            if !sockets.isEmpty { try descriptor.setOption(SOL_SOCKET, SO_REUSEPORT, 1) }
            try descriptor.bind(endpoint)
            if sockets.isEmpty { try descriptor.setOption(SOL_SOCKET, SO_REUSEPORT, 1) }
            endpoint.port = try descriptor.boundEndpoint()?.port ?? endpoint.port
            sockets.append(try DatagramSocket(descriptor, local: endpoint))
        }
        return sockets
    }

    private func prepare() throws(SystemError) {
        try descriptor.setOption(SOL_SOCKET, SO_RCVBUF, DatagramSocket.bufferSize)
        try descriptor.setOption(SOL_SOCKET, SO_SNDBUF, DatagramSocket.bufferSize)
        // Path MTU messages are ignored: a forged ICMP message could force replies into fragments, which can be forged.
        // A socket of both families has an option for each.
        for endpoint in endpoints {
            try descriptor.setOption(
                endpoint.address.isIPv4, (IP_MTU_DISCOVER, IP_PMTUDISC_OMIT), (IPV6_MTU_DISCOVER, IPV6_PMTUDISC_OMIT))
        }
        if isWildcard { try descriptor.setOption(local.address.isIPv4, (IP_PKTINFO, 1), (IPV6_RECVPKTINFO, 1)) }
    }
}
