import Base
import Cryptography
import DNSWire
import Foundation
import Glibc
import HTTP
import HTTPDNS

@testable import DemoService

/// Key, id and vectors as in the tests of HTTPDNS.
let account = DemoAccount(
    id: 12345, aesKey: Array("Swift-HTTPDNS-16".utf8), desKey: Array("Swift!01".utf8), token: Array("67890".utf8))

func names(_ texts: String...) -> [Name] { texts.map { Name($0)! } }

func addresses(_ texts: String...) -> [IPAddress] { texts.map { IPAddress($0)! } }

func stopped(_ service: DemoService) async {
    await withCheckedContinuation { done in service.stop { done.resume() } }
}

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

extension TencentAccount {
    /// A whole request.
    func request(
        _ names: [Name], family: Families, host: String, at unixSeconds: UInt64 = 0
    ) throws(RequestError) -> [UInt8] {
        try HTTPRequestWriter(host: host, keepsConnection: true).get { request throws(RequestError) in
            try appendTarget(names, family: family, at: unixSeconds, to: &request)
        }
    }
}
