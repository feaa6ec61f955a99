public import Base
internal import CLinux
internal import Glibc

/// The common options of sockets.
extension Descriptor {
    /// The type of a socket. The C library's constants are named only in this file, which imports both modules that
    /// declare them: with one import, whether the compiler finds them depends on the files that it compiles together.
    enum SocketKind {
        case stream, datagram, raw

        fileprivate var type: __socket_type {
            switch self {
            case .stream: SOCK_STREAM
            case .datagram: SOCK_DGRAM
            case .raw: SOCK_RAW
            }
        }
    }

    /// A new socket, close-on-exec and nonblocking.
    static func socket(_ family: Int32, _ kind: SocketKind) throws(SystemError) -> Descriptor {
        let flags = SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
        return try made(by: "socket") { Glibc.socket(family, Int32(kind.type.rawValue | flags), 0) }
    }

    /// - Parameter subject: The option's name, for errors that an operator sees.
    func setOption(
        _ level: Int32, _ name: Int32, _ value: Int32, _ subject: String = ""
    ) throws(SystemError) {
        var value = value
        // Sound: the kernel copies the four bytes during the call.
        try SystemCall.require("setsockopt", subject) {
            unsafe setsockopt(raw, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
        }
    }

    /// Sets an option of an IP socket that has other names, and perhaps another value, for IPv4 than for IPv6.
    func setOption(_ isIPv4: Bool, _ ipv4: (name: Int32, value: Int32), _ ipv6: (name: Int32, value: Int32))
        throws(SystemError)
    {
        let (name, value) = isIPv4 ? ipv4 : ipv6
        try setOption(Int32(isIPv4 ? IPPROTO_IP : IPPROTO_IPV6), name, value)
    }

    func option(_ level: Int32, _ name: Int32) throws(SystemError) -> Int32 {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        // Sound: `length` tells the kernel the room in `value`.
        try SystemCall.require("getsockopt") { unsafe getsockopt(raw, level, name, &value, &length) }
        return value
    }

    /// Makes the socket leave this machine only in one way; call it before it is connected.
    func leave(by egress: Egress, to endpoint: Endpoint) throws(SystemError) {
        guard egress != Egress() else { return }
        if egress.mark != 0 { try setOption(SOL_SOCKET, SO_MARK, Int32(bitPattern: egress.mark), "SO_MARK") }
        if !egress.device.isEmpty {
            try SystemCall.require("setsockopt", "SO_BINDTODEVICE \(egress.device)") {
                // Sound: the kernel copies the text and its zero during the call.
                unsafe egress.device.withCString { name in
                    unsafe setsockopt(raw, SOL_SOCKET, SO_BINDTODEVICE, name, socklen_t(egress.device.utf8.count + 1))
                }
            }
        }
        guard let source = egress.source else { return }
        guard source.isIPv4 == endpoint.address.isIPv4 else {
            throw SystemError("bind", source.description, code: EAFNOSUPPORT)
        }
        // The port is chosen when the socket is connected, so there are as many ports as without a bound address.
        try? setOption(Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, 1)
        do throws(SystemError) {
            try bind(Endpoint(source, port: 0))
        } catch {
            throw SystemError(error.call, source.description, code: error.code)
        }
    }

    func bind(_ endpoint: Endpoint) throws(SystemError) {
        let address = try SocketAddress(reaching: endpoint)
        try SystemCall.require("bind", endpoint.description) {
            unsafe address.withStorage { unsafe Glibc.bind(raw, $0, $1) }
        }
    }

    /// The address that this socket is bound to; nil if it is not an IP socket.
    func boundEndpoint() throws(SystemError) -> Endpoint? {
        let name = unsafe SocketAddress.filled { unsafe getsockname(raw, $0, $1) }
        guard name.result == 0 else { throw SystemError("getsockname", code: errno) }
        return name.address?.endpoint
    }

    /// The endpoints at which a bound socket is reached: a socket of all IPv6 addresses may be one of all IPv4 addresses,
    /// too.
    func endpoints(boundTo local: Endpoint) throws(SystemError) -> [Endpoint] {
        guard local.address == IPAddress(v6: 0, 0), try option(Int32(IPPROTO_IPV6), IPV6_V6ONLY) == 0 else {
            return [local]
        }
        return [local, Endpoint(IPAddress(v4: 0), port: local.port)]
    }

    func setBlocking(_ blocking: Bool) throws(SystemError) {
        let flags = try SystemCall.require("fcntl") { fcntl(raw, F_GETFL) }
        let wanted = blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK
        try SystemCall.require("fcntl") { fcntl(raw, F_SETFL, wanted) }
    }
}

extension Egress {
    /// Throws why no socket can leave this machine in this way now.
    public func check() throws(SystemError) {
        guard self != Egress() else { return }
        let address = (source?.isIPv4 ?? true) ? IPAddress.v4(127, 0, 0, 1) : IPAddress(v6: 0, 1)
        try Descriptor.socket(address.isIPv4 ? AF_INET : AF_INET6, .datagram).leave(
            by: self, to: Endpoint(address, port: 0))
    }
}
