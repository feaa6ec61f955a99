internal import Base
internal import Glibc

/// A listening socket that the service manager has passed to the daemon.
public enum ListeningSocket {
    case datagram(DatagramSocket)
    case stream(StreamListener)

    /// Determines the descriptor's kind of socket and takes it over; closes the descriptor if it cannot be listened on.
    /// - Throws: ENOTSOCK for no socket, EAFNOSUPPORT for a family other than IPv4 and IPv6, EDESTADDRREQ if not bound,
    ///   EPROTOTYPE for neither UDP nor TCP, EINVAL for a TCP socket that does not listen.
    public static func adopt(_ descriptor: consuming Descriptor) throws(SystemError) -> ListeningSocket {
        let subject = "descriptor \(descriptor.raw)"
        try SystemCall.require("fcntl") { fcntl(descriptor.raw, F_SETFD, FD_CLOEXEC) }
        try descriptor.setBlocking(false)
        guard let local = try descriptor.boundEndpoint() else {
            throw SystemError("adopt", subject, code: EAFNOSUPPORT)
        }
        guard local.port != 0 else { throw SystemError("adopt", subject, code: EDESTADDRREQ) }
        let endpoints = try descriptor.endpoints(boundTo: local)
        switch try descriptor.option(SOL_SOCKET, SO_PROTOCOL) {
        case Int32(IPPROTO_UDP):
            return .datagram(try DatagramSocket(descriptor, local: local, endpoints: endpoints))
        case Int32(IPPROTO_TCP):
            guard try descriptor.option(SOL_SOCKET, SO_ACCEPTCONN) == 1 else {
                throw SystemError("adopt", subject, code: EINVAL)
            }
            return .stream(StreamListener(descriptor, local: local, endpoints: endpoints))
        default:
            throw SystemError("adopt", subject, code: EPROTOTYPE)
        }
    }
}
