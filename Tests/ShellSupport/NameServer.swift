package import Base
internal import Foundation

/// A resolver on loopback that gives these addresses for any name.
package final class NameServer: Sendable {
    package let server: Server
    private let socket: ServerSocket

    package init(v4: [IPAddress], v6: [IPAddress]) throws {
        let (descriptor, endpoint) = try loopbackSocket(SOCK_DGRAM)
        (socket, server) = (ServerSocket(descriptor), Server(endpoint))
        Thread.detachNewThread { [socket] in
            socket.answerAll { query in
                guard query.count > 12 else { return nil }
                let query = Array(query)
                let type = query[questionEnd(of: query) - 3]
                return answer(to: query, addresses: type == 1 ? v4 : type == 28 ? v6 : [])
            }
        }
    }

    deinit { socket.end() }
}

/// The query's question and these addresses, written by hand, each with a TTL of 60 s.
/// - Parameters:
///   - query: A message with a question.
///   - code: The RCODE.
package func answer(
    to query: [UInt8], addresses: [IPAddress], code: UInt8 = 0, isTruncated: Bool = false
) -> [UInt8] {
    let question = query[12..<questionEnd(of: query)]
    let head: [UInt8] = [isTruncated ? 0x83 : 0x81, 0x80 | code, 0, 1, 0, UInt8(addresses.count), 0, 0, 0, 0]
    return addresses.reduce(query[..<2] + head + question) { message, address in
        let octets = address.octets
        return message + [0xC0, 0x0C, 0, octets.count == 4 ? 1 : 28, 0, 1, 0, 0, 0, 60, 0, UInt8(octets.count)] + octets
    }
}

private func questionEnd(of query: [UInt8]) -> Int {
    var end = 12
    while query[end] != 0 { end += 1 + Int(query[end]) }
    return end + 5
}
