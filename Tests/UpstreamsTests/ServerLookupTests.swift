import Base
import Configuration
import Cryptography
import DNSWire
import DemoService
import Forwarding
import Foundation
import HTTPDNS
import ShellTestSupport
import Streams
import Testing
import Transport

@testable import Upstreams

/// The lookup over real sockets, its time the loop's, and its file.
@Suite struct ServerLookupTests {
    private let log = LogLines()
    private let server = Server(.tls, .name("www.example.com"), port: 853)

    /// A loop that runs a lookup for the length of `body`.
    private func run<Result>(
        file: ServerAddressFile? = nil, listening: [Endpoint] = [],
        account: ((EventLoop) throws -> (upstream: any Upstream, servers: [Server]))? = nil, resolvers: [Server],
        _ body: (EventLoop, OnLoop<ServerLookup>) throws -> Result
    ) throws -> Result {
        let loop = try EventLoop(label: "test")
        let lookup = OnLoop(ServerLookup(loop: loop, listening: listening, file: file, report: log.report))
        lookup.value.ask(
            account: try account.map { try $0(loop) }, resolvers: resolvers, at: Tick(nanoseconds: Clock.now()))
        loop.deadlineReached = { lookup.value.expire(at: Tick(nanoseconds: Clock.now())) }
        loop.turnEnded = { loop.setDeadline(lookup.value.nextDeadline?.nanoseconds) }
        loop.start()
        defer {
            let gate = Gate()
            loop.submit { lookup.value.close() }
            loop.stop { gate.open() }
            #expect(gate.wait())
        }
        return try body(loop, lookup)
    }

    private func find(_ server: Server, _ loop: EventLoop, _ lookup: OnLoop<ServerLookup>) -> ServerEndpoints? {
        let found = Arrivals<ServerEndpoints>()
        loop.submit {
            lookup.value.endpoints(of: server, at: Tick(nanoseconds: Clock.now())) { found.append($0) }
        }
        return found.next()
    }

    private func worked(_ server: Server, _ endpoint: String, _ loop: EventLoop, _ lookup: OnLoop<ServerLookup>) throws
    {
        let endpoint = try #require(Endpoint(endpoint))
        let gate = Gate()
        loop.submit {
            lookup.value.worked(server, at: endpoint)
            gate.open()
        }
        #expect(gate.wait())
    }

    private static func account(_ service: DemoService) -> (EventLoop) throws -> (
        upstream: any Upstream, servers: [Server]
    ) {
        { loop in
            let account = try TencentAccount(.aes(id: service.account.id, key: service.account.aesKey))
            let access = ServiceAccess(account: account, .plain, serverName: nil)
            return (StreamUpstream(loop: loop, access: access), [Server(service.http, .account)])
        }
    }

    @Test func theAccountKnowsTheName() throws {
        let service = try DemoService()
        defer { service.stop() }
        let found = try run(account: Self.account(service), resolvers: []) { find(server, $0, $1) }
        guard case .known(let endpoints) = found else {
            Issue.record("\(String(describing: found))")
            return
        }
        #expect(endpoints.allSatisfy { $0.port == 853 } && !endpoints.isEmpty)
    }

    @Test func withADeadAccountTheResolverIsAskedAndBothFamiliesAreTaken() throws {
        let resolver = try NameServer(v4: [.v4(192, 0, 2, 1)], v6: [IPAddress("2001:db8::1")!])
        let service = try DemoService()
        service.stop()
        let found = try run(account: Self.account(service), resolvers: [resolver.server]) { find(server, $0, $1) }
        #expect(found == .known([Endpoint("[2001:db8::1]:853")!, Endpoint("192.0.2.1:853")!]))
        #expect(log.all.isEmpty)
    }

    @Test func aNameThatCannotBeFoundIsSaidWithAllReasons() throws {
        let resolver = try NameServer(v4: [], v6: [])
        let (descriptor, closed) = try loopbackSocket(SOCK_DGRAM)
        close(descriptor)
        let found = try run(resolvers: [Server(closed), resolver.server]) { loop, lookup in
            let found = find(server, loop, lookup)
            // At once: it is not looked up again so soon.
            #expect(find(server, loop, lookup) == found)
            return found
        }
        let reason =
            "local resolver \(closed): recv: Connection refused; local resolver \(resolver.server): no record"
        #expect(found == .unknown(Failure(.unreachable, "no address of www.example.com: \(reason)")))
        #expect(
            log.all == ["warning no address of www.example.com is found, and its servers are not asked: \(reason)"])
    }

    @Test func itNeverLeadsBackHere() throws {
        let resolver = try NameServer(v4: [.v4(127, 0, 0, 1)], v6: [])
        let listening = Endpoint(.v4(0, 0, 0, 0), port: 853)
        let found = try run(listening: [listening], resolvers: [resolver.server]) { find(server, $0, $1) }
        guard case .unknown = found else {
            Issue.record("\(String(describing: found))")
            return
        }
        #expect(log.all.first?.contains("www.example.com leads to 127.0.0.1:853, which is this daemon itself") == true)
    }

    @Test func aServerWithAddressesIsNotLookedUp() throws {
        let server = Server(.tls, .name("dns.example"), port: 853, addresses: [.v4(192, 0, 2, 9)])
        #expect(try run(resolvers: []) { find(server, $0, $1) } == .known([Endpoint("192.0.2.9:853")!]))
    }

    @Test func whatWorkedOutlivesARestartAndASilentNetwork() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: "cache").path
        let resolver = try NameServer(v4: [.v4(192, 0, 2, 1), .v4(192, 0, 2, 2)], v6: [])
        let file = try ServerAddressFile(beside: path, report: log.report)
        try run(file: file, resolvers: [resolver.server]) { loop, lookup in
            #expect(find(server, loop, lookup) != nil)
            try worked(server, "192.0.2.2:853", loop, lookup)
            // The second is written when the file is closed, as that is so soon.
            try worked(server, "192.0.2.1:853", loop, lookup)
        }
        try stop(file)
        let text = try String(contentsOfFile: path + ".servers", encoding: .utf8)
        #expect(text.hasSuffix("\nwww.example.com 192.0.2.1 192.0.2.2\n"))
        let mode = try FileManager.default.attributesOfItem(atPath: path + ".servers")[.posixPermissions] as? Int
        #expect(mode == 0o600)

        let (descriptor, silent) = try loopbackSocket(SOCK_DGRAM)
        defer { close(descriptor) }
        let again = try ServerAddressFile(beside: path, report: log.report)
        let found = try run(file: again, resolvers: [Server(silent)]) { find(server, $0, $1) }
        #expect(found == .known([Endpoint("192.0.2.1:853")!, Endpoint("192.0.2.2:853")!]))
        try stop(again)
        #expect(log.all.isEmpty)
    }

    @Test func aFileThatIsNoneOrCannotBeWrittenIsNoHarm() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(
            at: folder.appending(path: "cache.servers"), withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let resolver = try NameServer(v4: [.v4(192, 0, 2, 1)], v6: [])
        let file = try ServerAddressFile(beside: folder.appending(path: "cache").path, report: log.report)
        let found = try run(file: file, resolvers: [resolver.server]) { loop, lookup in
            let found = find(server, loop, lookup)
            try worked(server, "192.0.2.1:853", loop, lookup)
            return found
        }
        try stop(file)
        #expect(found == .known([Endpoint("192.0.2.1:853")!]))
        #expect(log.all.count == 2)
        #expect(
            log.all.allSatisfy { $0.hasPrefix("warning the addresses of servers are not kept over a restart: ") })
    }

    private func stop(_ file: ServerAddressFile) throws {
        let gate = Gate()
        file.stop { gate.open() }
        #expect(gate.wait())
    }
}
