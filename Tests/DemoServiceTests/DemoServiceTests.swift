import Base
import Cryptography
import DNSWire
import DemoService
import Foundation
import HTTP
import HTTPDNS
import Testing

/// The service over real sockets, asked by the daemon's own client side.
@Suite struct DemoServiceTests {
    private func response(_ socket: BlockingSocket, _ reader: inout HTTPResponseReader) throws -> HTTPResponse? {
        while true {
            let bytes = try socket.receive()
            if bytes.isEmpty { return try reader.endOfStream() }
            if let response = try reader.receive(bytes.span) { return response }
        }
    }

    @Test(arguments: ["aes", "des"]) func http(algorithm: String) async throws {
        let service = try DemoService()
        let account = try TencentAccount(
            algorithm == "aes"
                ? .aes(id: service.account.id, key: Secret(service.account.aesKey))
                : .des(id: service.account.id, key: Secret(service.account.desKey)))
        let socket = try BlockingSocket.connected(to: service.http)
        var reader = HTTPResponseReader()
        for _ in 0..<3 {
            try socket.send(try account.request(names("ipv4.example.com", "x.test"), family: .both, host: "127.0.0.1"))
            let response = try #require(try response(socket, &reader))
            #expect(response.keepAlive)
            #expect(
                try account.parse(response, names: names("ipv4.example.com", "x.test"), family: .both) == [
                    NameAddresses(
                        name: Name("ipv4.example.com")!, ipv4: .addresses(addresses("192.0.2.4"), ttl: 120),
                        ipv6: .noRecord),
                    NameAddresses(name: Name("x.test")!, ipv4: .noRecord, ipv6: .noRecord),
                ])
        }
        await stopped(service)
        #expect(try socket.receive().isEmpty)
        #expect(throws: SocketFailure.self) { try BlockingSocket.connected(to: service.http) }
    }

    @Test func https() async throws {
        let service = try DemoService()
        let context = try TLSClientContext(TLSPolicy(anchors: service.certificatePEM))
        let account = try TencentAccount(.https(token: Secret(service.account.token)))
        let socket = try BlockingSocket.connected(to: service.https)
        let session = try context.session(to: service.https, at: 0)
        var reader = HTTPResponseReader()
        for _ in 0..<3 {
            let request = try account.request(names("www.example.com"), family: .ipv6, host: "127.0.0.1")
            session.send(request.span)
            let response = try #require(try exchange(session, socket, &reader))
            #expect(
                try account.parse(response, names: names("www.example.com"), family: .ipv6) == [
                    NameAddresses(
                        name: Name("www.example.com")!, ipv4: .notAsked,
                        ipv6: .addresses(addresses("2001:db8::1", "2001:db8::2"), ttl: 120))
                ])
        }
        await stopped(service)
    }

    private func exchange(
        _ session: TLSSession, _ socket: BlockingSocket, _ reader: inout HTTPResponseReader
    ) throws -> HTTPResponse? {
        while true {
            var ciphertext: [UInt8] = []
            session.takeCiphertext(into: &ciphertext)
            if !ciphertext.isEmpty { try socket.send(ciphertext) }
            let bytes = try socket.receive()
            if bytes.isEmpty { return nil }
            session.receive(bytes.span)
            var plaintext: [UInt8] = []
            session.takePlaintext(into: &plaintext)
            if let response = try reader.receive(plaintext.span) { return response }
        }
    }

    /// Answered and closed from our side, without a reset that would take the answer back.
    @Test func closing() async throws {
        let service = try DemoService()
        let socket = try BlockingSocket.connected(to: service.http)
        try socket.send(Array("PUT / HTTP/1.1\r\nHost: h\r\n\r\nmore that nobody reads".utf8))
        var reader = HTTPResponseReader()
        #expect(try response(socket, &reader)?.status == 501)
        #expect(try socket.receive().isEmpty)
        await stopped(service)
    }

    @Test func plainTextOnTheTLSPortEndsTheConnection() async throws {
        let service = try DemoService()
        let socket = try BlockingSocket.connected(to: service.https)
        try socket.send(Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
        while !(try socket.receive().isEmpty) {}
        await stopped(service)
    }

    @Test func tooManyConnectionsAreTurnedAway() async throws {
        let service = try DemoService()
        var sockets = try (0..<64).map { _ in try BlockingSocket.connected(to: service.http) }
        // Accepted in order, so this one is over the limit.
        #expect(try BlockingSocket.connected(to: service.http).receive().isEmpty)
        let request = Array("GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".utf8)
        try sockets[63].send(request)
        var reader = HTTPResponseReader()
        #expect(try response(sockets[63], &reader)?.status == 404)
        sockets.removeAll()
        // Room again as soon as the service has seen that they are closed.
        var answered: HTTPResponse?
        for _ in 0..<1000 where answered == nil {
            let socket = try BlockingSocket.connected(to: service.http)
            reader = HTTPResponseReader()
            try? socket.send(request)
            answered = try? response(socket, &reader)
        }
        #expect(answered?.status == 404)
        await stopped(service)
    }
}
