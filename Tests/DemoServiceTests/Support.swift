import Base
import Cryptography
import DNSWire
import DemoService
import Foundation
import Glibc
import HTTPDNS

/// Key, id and vectors as in the tests of HTTPDNS.
let account = DemoAccount(
    id: 12345, aesKey: Array("Swift-HTTPDNS-16".utf8), desKey: Array("Swift!01".utf8), token: Array("67890".utf8))

func names(_ texts: String...) -> [Name] { texts.map { Name($0)! } }

func addresses(_ texts: String...) -> [IPAddress] { texts.map { IPAddress($0)! } }

/// One conversation with an engine, and what it answered.
final class Talk {
    private(set) var responses: [String] = []
    private(set) var hasEnded = false
    private var conversation: ServiceConversation?

    init(_ engine: ServiceEngine, isSecure: Bool = false, client: IPAddress = .v4(203, 0, 113, 7)) {
        conversation = engine.conversation(isSecure: isSecure, client: client) { [unowned self] response, isLast in
            responses.append(String(decoding: response, as: UTF8.self))
            hasEnded = isLast
        }
    }

    func say(_ text: String) { say(Array(text.utf8)) }
    func say(_ bytes: [UInt8]) { conversation?.receive(bytes.span) }

    /// GET, and the body of what came back.
    func get(_ target: String) -> String? {
        say("GET \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        return responses.last?.components(separatedBy: "\r\n\r\n").last
    }

    var statuses: [String] { responses.map { String($0.dropFirst(9).prefix(3)) } }
}

struct SocketFailure: Error { let call: String }

/// A blocking socket with a time limit, so that a test can fail but not hang.
final class BlockingSocket: Sendable {
    let raw: Int32

    init(_ kind: __socket_type) throws {
        raw = socket(AF_INET, Int32(kind.rawValue), 0)
        var limit = timeval(tv_sec: 5, tv_usec: 0)
        guard raw >= 0, setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size)) == 0
        else { throw SocketFailure(call: "socket") }
    }

    deinit { close(raw) }

    static func connected(to endpoint: Endpoint) throws -> BlockingSocket {
        let socket = try BlockingSocket(SOCK_STREAM)
        guard withAddress(endpoint.port, { connect(socket.raw, $0, $1) }) == 0 else {
            throw SocketFailure(call: "connect")
        }
        return socket
    }

    func send(_ bytes: [UInt8]) throws {
        guard Glibc.send(raw, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw SocketFailure(call: "send")
        }
    }

    /// Empty at the end of the stream.
    func receive() throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 65536)
        var count: Int
        // With a time limit it ends with EINTR when the process has been stopped meanwhile.
        repeat { count = recv(raw, &buffer, buffer.count, 0) } while count < 0 && errno == EINTR
        guard count >= 0 else { throw SocketFailure(call: "recv") }
        return Array(buffer.prefix(count))
    }
}

private func withAddress<T>(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> T) -> T {
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_port = port.bigEndian
    name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &name) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
}

/// A DNS resolver on threads of its own: 198.51.100.81 and 2001:db8:5::81 with TTL 77 for names that begin with
/// `known`, REFUSED for `refused`, forged answers before the true one for `forged`, an answer over TCP alone for `large`,
/// nothing at all for `silent`, and no such name for the rest.
final class ScriptedResolver: Sendable {
    let endpoint: Endpoint
    private let socket: BlockingSocket

    init() throws {
        let (socket, listener, port) = try Self.socketsOfOnePort()
        self.socket = socket
        endpoint = Endpoint(.v4(127, 0, 0, 1), port: port)
        guard listen(listener.raw, 8) == 0 else { throw SocketFailure(call: "listen") }
        Thread { ScriptedResolver.serve(socket) }.start()
        Thread { ScriptedResolver.accept(listener) }.start()
    }

    /// A port that is free for UDP may be taken for TCP: another one is asked for then.
    private static func socketsOfOnePort() throws -> (BlockingSocket, BlockingSocket, UInt16) {
        for _ in 0..<64 {
            let (socket, listener) = (try BlockingSocket(SOCK_DGRAM), try BlockingSocket(SOCK_STREAM))
            guard withAddress(0, { bind(socket.raw, $0, $1) }) == 0 else { throw SocketFailure(call: "bind") }
            var name = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            _ = withUnsafeMutablePointer(to: &name) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket.raw, $0, &length) }
            }
            let port = UInt16(bigEndian: name.sin_port)
            if withAddress(port, { bind(listener.raw, $0, $1) }) == 0 { return (socket, listener, port) }
        }
        throw SocketFailure(call: "bind")
    }

    /// One query on each connection. Ends when none has come for the socket's time limit.
    private static func accept(_ listener: BlockingSocket) {
        while true {
            let client = Glibc.accept(listener.raw, nil, nil)
            guard client >= 0 else { return }
            defer { close(client) }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = recv(client, &buffer, buffer.count, 0)
            guard count > 2, let reply = replies(Array(buffer[2..<count]), isStream: true).first else { continue }
            let framed = [UInt8(reply.count >> 8), UInt8(reply.count & 0xFF)] + reply
            _ = Glibc.send(client, framed, framed.count, Int32(MSG_NOSIGNAL))
        }
    }

    /// Ends when no query has come for the socket's time limit.
    private static func serve(_ socket: BlockingSocket) {
        while true {
            var buffer = [UInt8](repeating: 0, count: 4096)
            var client = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let count = withUnsafeMutablePointer(to: &client) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    recvfrom(socket.raw, &buffer, buffer.count, 0, $0, &length)
                }
            }
            guard count > 0 else { return }
            for reply in replies(Array(buffer.prefix(count))) {
                _ = withUnsafePointer(to: &client) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        sendto(socket.raw, reply, reply.count, 0, $0, length)
                    }
                }
            }
        }
    }

    private static func replies(_ query: [UInt8], isStream: Bool = false) -> [[UInt8]] {
        let label = String(decoding: query[13..<13 + Int(query[12])], as: UTF8.self)
        let questionEnd = query[12...].firstIndex(of: 0)! + 5
        let isIPv4 = query[questionEnd - 3] == 1
        func reply(code: UInt8, address: [UInt8]?) -> [UInt8] {
            let counts: [UInt8] = [0, 1, 0, address == nil ? 0 : 1, 0, 0, 0, 0]
            var reply = Array(query[..<2]) + [0x81, 0x80 | code] + counts + Array(query[12..<questionEnd])
            if let address {
                reply += [0xC0, 0x0C, 0, isIPv4 ? 1 : 28, 0, 1, 0, 0, 0, 77, 0, UInt8(address.count)] + address
            }
            return reply
        }
        let known = reply(
            code: 0,
            address: isIPv4 ? [198, 51, 100, 81] : [0x20, 0x01, 0x0D, 0xB8, 0, 5] + [0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81])
        if label.hasPrefix("known") { return [known] }
        if label.hasPrefix("large") {
            guard !isStream else { return [known] }
            var truncated = reply(code: 0, address: nil)
            truncated[2] |= 2
            return [truncated]
        }
        if label.hasPrefix("silent") { return [] }
        if label.hasPrefix("refused") { return [reply(code: 5, address: nil)] }
        if label.hasPrefix("forged") {
            var otherID = known
            otherID[0] ^= 1
            otherID[otherID.count - 1] = 66
            var otherName = known
            otherName[13] = UInt8(ascii: "x")
            return [otherID, otherName, [], Array(known.dropLast()), known]
        }
        return [reply(code: 3, address: nil)]
    }
}

extension TencentAccount {
    /// A request whose time does not matter.
    func request(_ names: [Name], family: Families, host: String) throws(RequestError) -> [UInt8] {
        try request(names, family: family, host: host, at: 0)
    }
}
