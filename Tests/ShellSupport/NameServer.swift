package import Base
internal import Foundation

/// A resolver on loopback that gives these addresses for any name; its messages are made by hand.
package final class NameServer: Sendable {
    package let server: Server
    private let raw: Int32

    package init(v4: [IPAddress], v6: [IPAddress]) throws {
        let (raw, endpoint) = try loopbackSocket(SOCK_DGRAM)
        (self.raw, server) = (raw, Server(endpoint))
        Thread.detachNewThread {
            var query = [UInt8](repeating: 0, count: 4096)
            while true {
                var peer = sockaddr_in()
                var size = socklen_t(MemoryLayout<sockaddr_in>.size)
                let count = withUnsafeMutablePointer(to: &peer) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        recvfrom(raw, &query, query.count, 0, $0, &size)
                    }
                }
                guard count > 12 else { return }
                let end = query[12..<count].firstIndex(of: 0)! + 5
                let addresses = query[end - 3] == 1 ? v4 : query[end - 3] == 28 ? v6 : []
                let head: [UInt8] = [0x81, 0x80, 0, 1, 0, UInt8(addresses.count), 0, 0, 0, 0]
                var reply = query[0..<2] + head + query[12..<end]
                for address in addresses {
                    reply += [0xC0, 0x0C, 0, query[end - 3], 0, 1, 0, 0, 0, 60, 0, UInt8(address.octets.count)]
                    reply += address.octets
                }
                let bytes = Array(reply)
                withUnsafePointer(to: &peer) {
                    _ = $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        sendto(raw, bytes, bytes.count, 0, $0, size)
                    }
                }
            }
        }
    }

    deinit {
        shutdown(raw, Int32(SHUT_RDWR))
        close(raw)
    }
}
