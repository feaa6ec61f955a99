package import Base
package import Foundation

/// A server's socket, of which its thread and its owner each let go in their own time. It is closed when both have: closed
/// earlier, its number could be another test's when the thread waits on it next.
package final class ServerSocket: Sendable {
    private let raw: Int32
    package init(_ raw: Int32) { self.raw = raw }
    deinit { close(raw) }

    /// Whoever waits on it is woken, and nobody waits any more.
    package func end() { shutdown(raw, Int32(SHUT_RDWR)) }

    /// The next connection; nil at the end.
    package func accept() -> Int32? {
        let client = Foundation.accept(raw, nil, nil)
        return client < 0 ? nil : client
    }

    /// Answers each datagram that comes until the end; nil: not at all.
    package func answerAll(_ answer: (ArraySlice<UInt8>) -> [UInt8]?) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            var peer = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let count = withUnsafeMutablePointer(to: &peer) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    recvfrom(raw, &buffer, buffer.count, 0, $0, &length)
                }
            }
            guard count > 0 else { return }
            guard let reply = answer(buffer[..<count]) else { continue }
            withUnsafePointer(to: &peer) {
                _ = $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(raw, reply, reply.count, 0, $0, length)
                }
            }
        }
    }
}

/// A TCP socket that listens on an address 127.0.0.`octet`; on a port of its own if that is 0.
package func listeningSocket(octet: UInt8 = 1, port: UInt16 = 0) throws -> (descriptor: Int32, endpoint: Endpoint) {
    let listener = try loopbackSocket(SOCK_STREAM, octet: octet, port: port)
    guard listen(listener.descriptor, 64) == 0 else { throw POSIXError(.EADDRINUSE) }
    return listener
}

/// A socket bound to an address 127.0.0.`octet`; to a port of its own if that is 0.
package func loopbackSocket(
    _ type: __socket_type, octet: UInt8 = 1, port: UInt16 = 0
) throws -> (descriptor: Int32, endpoint: Endpoint) {
    let descriptor = socket(AF_INET, Int32(type.rawValue), 0)
    let (status, bound) = withLoopback(octet, port) { name, length in
        bind(descriptor, name, length.pointee) + getsockname(descriptor, name, length)
    }
    guard status == 0 else { throw POSIXError(.EADDRINUSE) }
    return (descriptor, Endpoint(.v4(127, 0, 0, octet), port: bound))
}

/// Has a socket connected to a port of 127.0.0.1. One that does not block may not be connected yet at the end.
package func connectToLoopback(_ descriptor: Int32, port: UInt16) {
    _ = withLoopback(1, port) { connect(descriptor, $0, $1.pointee) }
}

/// - Returns: What `body` does, and the port of the address behind it.
private func withLoopback(
    _ octet: UInt8, _ port: UInt16, _ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
) -> (status: Int32, port: UInt16) {
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_addr.s_addr = (UInt32(0x7F00_0000) | UInt32(octet)).bigEndian
    name.sin_port = port.bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &name) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, &length) }
    }
    return (status, UInt16(bigEndian: name.sin_port))
}
