internal import Base
internal import CLinux
internal import Glibc

/// What the kinds of sockets have in common.
extension Descriptor {
    /// What a socket carries. The C library's constants are named in this file alone, which imports both modules that
    /// declare them: where only one is imported, the compiler finds them or not, by which files it compiles together.
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
        return Descriptor(
            adopting: try SystemCall.require("socket") { Glibc.socket(family, Int32(kind.type.rawValue | flags), 0) })
    }

    func setOption(_ level: Int32, _ name: Int32, _ value: Int32) throws(SystemError) {
        var value = value
        // Sound: the kernel copies the four bytes during the call.
        try SystemCall.require("setsockopt") {
            unsafe setsockopt(raw, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
        }
    }

    func option(_ level: Int32, _ name: Int32) throws(SystemError) -> Int32 {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        // Sound: `length` tells the kernel the room in `value`.
        try SystemCall.require("getsockopt") { unsafe getsockopt(raw, level, name, &value, &length) }
        return value
    }

    func bind(_ endpoint: Endpoint) throws(SystemError) {
        try SystemCall.require("bind", endpoint.description) {
            unsafe SocketAddress(endpoint).withStorage { unsafe Glibc.bind(raw, $0, $1) }
        }
    }

    /// The address this socket is bound to; nil if it is not an IP socket.
    func boundEndpoint() throws(SystemError) -> Endpoint? {
        let name = unsafe SocketAddress.filled { unsafe getsockname(raw, $0, $1) }
        guard name.result == 0 else { throw SystemError("getsockname", code: errno) }
        return name.address?.endpoint
    }

    func setBlocking(_ blocking: Bool) throws(SystemError) {
        let flags = try SystemCall.require("fcntl") { fcntl(raw, F_GETFL) }
        let wanted = blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK
        try SystemCall.require("fcntl") { fcntl(raw, F_SETFL, wanted) }
    }

    func setCloseOnExec() throws(SystemError) {
        try SystemCall.require("fcntl") { fcntl(raw, F_SETFD, FD_CLOEXEC) }
    }
}
