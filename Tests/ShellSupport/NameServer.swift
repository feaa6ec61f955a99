package import Base
internal import Foundation

/// A resolver on loopback that gives these addresses for any name; its messages are made by hand.
package final class NameServer: Sendable {
    package let server: Server
    private let socket: ServerSocket

    package init(v4: [IPAddress], v6: [IPAddress]) throws {
        let (descriptor, endpoint) = try loopbackSocket(SOCK_DGRAM)
        (socket, server) = (ServerSocket(descriptor), Server(endpoint))
        Thread.detachNewThread { [socket] in
            socket.answerAll { query in
                guard query.count > 12 else { return nil }
                let end = query[12...].firstIndex(of: 0)! + 5
                let addresses = query[end - 3] == 1 ? v4 : query[end - 3] == 28 ? v6 : []
                let head: [UInt8] = [0x81, 0x80, 0, 1, 0, UInt8(addresses.count), 0, 0, 0, 0]
                var reply = query[0..<2] + head + query[12..<end]
                for address in addresses {
                    reply += [0xC0, 0x0C, 0, query[end - 3], 0, 1, 0, 0, 0, 60, 0, UInt8(address.octets.count)]
                    reply += address.octets
                }
                return Array(reply)
            }
        }
    }

    deinit { socket.end() }
}
