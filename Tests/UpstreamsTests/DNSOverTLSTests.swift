import Base
import Cryptography
import DNSWire
import Forwarding
import Foundation
import ShellTestSupport
import Synchronization
import Testing

@testable import Upstreams

/// The queries to a server over TLS, and the servers that get them.
@Suite struct DNSOverTLSTests {
    private static let loopback = IPAddress.v4(127, 0, 0, 1)

    /// The queries of the client, and the protocol that ALPN has chosen.
    private final class Seen: Sendable {
        let queries = Arrivals<[UInt8]>()
        let protocols = Arrivals<String?>()

        var script: @Sendable (Int, FramesConnection) -> Void {
            { [self] _, connection in
                var isFirst = true
                while let query = connection.query() {
                    if isFirst { protocols.append(connection.applicationProtocol) }
                    isFirst = false
                    queries.append(query)
                    connection.answer(answer(to: query))
                }
            }
        }
    }

    /// Every query has 128 octets, whatever its name (RFC 8467 §4.1), and its padding is an EDNS option of zeros.
    @Test func queriesArePadded() throws {
        let (tls, seen) = (try TLSServerSettings(addresses: [Self.loopback]), Seen())
        let server = try FramesServer(tls: tls, seen.script)
        let asking = try StreamAsking(trusting: [tls.certificate])
        for number in [1, 22, 133] as [UInt32] {
            #expect(asking.ask(Server(server.endpoint, .tls), number)?.address == UInt8(number))
            let query = try #require(seen.queries.next())
            #expect(query.count == 128)
            let name = 2 + "w\(number)".utf8.count + "example".utf8.count + 1
            let options = 12 + name + 4 + 11
            // The option before it asks for how long the server keeps the connection (RFC 7828).
            #expect(query[options..<options + 4] == [0, 11, 0, 0])
            let option = options + 4
            #expect(query[option..<option + 2] == [0, 12])
            #expect(Int(query[option + 2]) << 8 | Int(query[option + 3]) == query.count - option - 4)
            #expect(query[(option + 4)...].allSatisfy { $0 == 0 })
            // These octets are one OPT record.
            #expect(Int(query[options - 2]) << 8 | Int(query[options - 1]) == query.count - options)
        }
        #expect(seen.protocols.next() == "dot")
        asking.end()
    }

    /// The queries of one turn of the loop leave in one piece, when the outbox is told to send.
    @Test func queriesOfATurnShareARecord() throws {
        let (tls, reads, outbox) = (try TLSServerSettings(addresses: [Self.loopback]), Arrivals<Int>(), Outbox())
        let server = try FramesServer(tls: tls) { _, connection in
            while let query = connection.query() {
                reads.append(connection.reads)
                connection.answer(answer(to: query))
            }
        }
        let asking = try StreamAsking(trusting: [tls.certificate], outbox: outbox)
        let sending = Sending(outbox: outbox)
        // A query that waits for a connection leaves when the connection is established.
        #expect(asking.ask(Server(server.endpoint, .tls), 1)?.address == 1)
        let before = try #require(reads.next())
        #expect(asking.onLoop { _ in sending.outbox.send() } == true)
        asking.ask(Server(server.endpoint, .tls), 2...9)
        #expect(asking.onLoop { _ in sending.outbox.send() } == true)
        #expect(asking.next(8) == StreamAsking.answered(2...9))
        #expect((0..<8).map { _ in reads.next() } == Array(repeating: before + 1, count: 8))
        #expect(asking.onLoop { _ in sending.outbox.send() } == false)
        asking.end()
    }

    /// The server closes an idle connection when a query comes, and closes the next connection before it answers: only
    /// that end counts as an attempt, so there is one more.
    @Test func anIdleConnectionThatIsClosedIsNoAttempt() throws {
        let (tls, isTaken) = (try TLSServerSettings(addresses: [Self.loopback]), Gate())
        let server = try FramesServer(tls: tls) { number, connection in
            guard let query = connection.query() else { return }
            if number != 2 { connection.answer(answer(to: query)) }
            if number == 1 { _ = isTaken.wait() }
            if number == 3 { _ = connection.query() }
        }
        // No query leaves on the idle connection: the client learns of its end first.
        let asking = try StreamAsking(trusting: [tls.certificate], outbox: Outbox())
        #expect(asking.ask(Server(server.endpoint, .tls), 1)?.address == 1)
        asking.advance(milliseconds: 1)
        asking.ask(Server(server.endpoint, .tls), 2...2)
        #expect(asking.onLoop { _ in true } == true)
        isTaken.open()
        #expect(asking.next() == StreamAsking.answered(2...2).first)
        #expect((1...3).map { _ in server.connections.next() } == [1, 2, 3])
        asking.end()
    }

    /// The outbox is used on the loop alone.
    private struct Sending: @unchecked Sendable { let outbox: Outbox }

    /// Some servers know ALPN but not "dot": they are asked once more without ALPN. A later connection offers "dot"
    /// again, since anybody on the path can send the alert.
    @Test(arguments: [false, true]) func aServerThatKnowsNoDot(refuses: Bool) throws {
        var tls = try TLSServerSettings(addresses: [Self.loopback])
        (tls.protocols, tls.refusesOthers) = (["h2"], refuses)
        let seen = Seen()
        let server = try FramesServer(tls: tls, seen.script)
        let asking = try StreamAsking(trusting: [tls.certificate])
        for number: UInt32 in 1...2 {
            #expect(asking.ask(Server(server.endpoint, .tls), number)?.address == UInt8(number))
            #expect(seen.protocols.next() == .some(nil))
            #expect(server.connections.next() != nil)
            if refuses { #expect(server.connections.next() != nil) }
            #expect(server.connections.isEmpty)
            asking.onLoop { $0.expire(at: asking.now.advanced(milliseconds: 30_000)) }
        }
        asking.end()
    }

    /// Two connections have offered "dot" when the server refuses the first of them: the second is tried again as well.
    @Test func eachHandshakeThatOfferedDotGetsAnother() throws {
        var tls = try TLSServerSettings(addresses: [Self.loopback])
        (tls.protocols, tls.refusesOthers) = (["h2"], true)
        let handshakes = [Gate(), Gate()]
        let server = try FramesServer(tls: tls) { number, connection in
            if number <= handshakes.count { #expect(handshakes[number - 1].wait()) }
            while let query = connection.query() { connection.answer(answer(to: query)) }
        }
        let asking = try StreamAsking(trusting: [tls.certificate])
        let target = Server(server.endpoint, .tls)
        asking.ask(target, 1...1)
        #expect(server.connections.next() == 1)
        // The first connection goes on being made, and the next query gets one of its own.
        asking.onLoop { $0.cancel(QueryID(standalone: 1, of: .fallback), isOverdue: true) }
        asking.ask(target, 2...2)
        #expect(server.connections.next() == 2)
        handshakes[0].open()
        #expect(server.connections.next() == 3)
        handshakes[1].open()
        #expect(asking.next() == .init(number: 2, address: 2))
        #expect(server.connections.next() == 4 && server.connections.isEmpty)
        asking.end()
    }

    private static func hash(ofSignedPartIn pem: [UInt8]) throws -> [UInt8] {
        // A second opinion: OpenSSL's own parser finds the signed part, its own tool makes the digest.
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data(pem).write(to: folder.appending(path: "c.pem"))
        let shell = Process()
        shell.executableURL = URL(filePath: "/bin/sh")
        shell.currentDirectoryURL = folder
        shell.arguments = [
            "-c",
            "openssl asn1parse -in c.pem -strparse 4 -noout -out t.der; openssl dgst -sha256 -binary t.der > hash",
        ]
        try shell.run()
        shell.waitUntilExit()
        return Array(try Data(contentsOf: folder.appending(path: "hash")))
    }

    private enum Wrong: CaseIterable {
        case name, authority, hash, nothingTrusted
    }

    /// No octet of a question goes to a server that does not prove its identity.
    @Test(arguments: [0, 1, 2, 3]) func aServerThatProvesNothing(index: Int) throws {
        let tls = try TLSServerSettings(names: ["dns.example"], addresses: [Self.loopback])
        let other = try TLSServerSettings(names: ["dns.example"])
        let seen = Seen()
        let server = try FramesServer(tls: tls, seen.script)
        let (address, port) = (Server.Host.address(Self.loopback, nil), server.endpoint.port)
        let wrong = Wrong.allCases[index]
        let target =
            switch wrong {
            case .name: Server(.tls, address, port: port, certificateName: "other.example")
            case .hash:
                Server(.tls, address, port: port, hashes: [try Self.hash(ofSignedPartIn: other.certificate)])
            case .authority, .nothingTrusted: Server(.tls, address, port: port)
            }
        let trusted =
            switch wrong {
            case .name, .hash: [tls.certificate]
            case .authority: [other.certificate]
            case .nothingTrusted: [] as [[UInt8]]
            }
        let asking = try StreamAsking(trusting: trusted)
        #expect(asking.ask(target, 1)?.failure?.kind == .untrusted)
        #expect(seen.queries.isEmpty)
        asking.end()
    }

    @Test func whatIsNamedMustBeThere() throws {
        let tls = try TLSServerSettings(names: ["dns.example"])
        let hash = try Self.hash(ofSignedPartIn: tls.certificate)
        let seen = Seen()
        let server = try FramesServer(tls: tls, seen.script)
        let port = server.endpoint.port
        let asking = try StreamAsking(trusting: [tls.certificate])
        let named = Server(
            .tls, .address(Self.loopback, nil), port: port, certificateName: "dns.example", hashes: [hash])
        #expect(asking.ask(named, 1)?.address == 1)
        // A session that was accepted for one server is not resumed for another at the same address.
        let otherHash = Server(
            .tls, .address(Self.loopback, nil), port: port, certificateName: "dns.example",
            hashes: [[UInt8](repeating: 7, count: 32)])
        #expect(asking.ask(otherHash, 2)?.failure?.kind == .untrusted)
        let byAddress = Server(.tls, .address(Self.loopback, nil), port: port)
        #expect(asking.ask(byAddress, 3)?.failure?.kind == .untrusted)
        asking.end()
    }

    /// With an address beside an address, the first is dialled, and the other one must be in the certificate.
    @Test func anAddressInPlaceOfAnother() throws {
        let own = IPAddress.v4(192, 0, 2, 7)
        let tls = try TLSServerSettings(names: [], addresses: [own])
        let server = try FramesServer(tls: tls, Seen().script)
        let port = server.endpoint.port
        let asking = try StreamAsking(trusting: [tls.certificate])
        #expect(asking.ask(Server(.tls, .address(own, nil), port: port, addresses: [Self.loopback]), 1)?.address == 1)
        let other = Server(.tls, .address(.v4(192, 0, 2, 8), nil), port: port, addresses: [Self.loopback])
        #expect(asking.ask(other, 2)?.failure?.kind == .untrusted)
        asking.end()
    }

    /// A server without TLS is not reported as a server with a wrong certificate.
    @Test func aServerWithoutTLS() throws {
        let server = try FramesServer { _, connection in connection.send(Array("HTTP/1.1 400 Bad Request".utf8)) }
        let asking = try StreamAsking(trusting: [try TLSServerSettings(names: ["dns.example"]).certificate])
        #expect(
            asking.ask(Server(.tls, .address(Self.loopback, nil), port: server.endpoint.port), 1)?.failure?.kind
                == .insecure)
        asking.end()
    }
}
