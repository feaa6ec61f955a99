import Base
import DNSWire
import Forwarding
import Foundation
import ShellTestSupport
import Testing
import Transport

@testable import Upstreams

/// The lookup on a loop, with questions that the test answers, and its file.
@Suite struct ServerLookupTests {
    private let log = LogLines()
    private let server = Server(.tls, .name("www.example.com"), port: 853)

    /// A loop that runs a lookup for the length of `body`.
    /// - Parameter addresses: The answers to its questions; nil: no answers.
    private func run<Result>(
        file: ServerAddressFile? = nil, listening: [Endpoint] = [], finding addresses: [IPAddress]?,
        _ body: (EventLoop, OnLoop<ServerLookup>) throws -> Result
    ) throws -> Result {
        let loop = try EventLoop(label: "test")
        let lookup = OnLoop(ServerLookup(loop: loop, listening: listening, file: file, report: log.report))
        lookup.value.ask = { name, type, number in
            guard let addresses else { return }
            let those = addresses.filter { $0.isIPv4 == (type == .a) }
            let answer: Answer =
                those.isEmpty
                ? .noData(name, type: type, negativeTTL: 30) : .addresses(name, type: type, those, ttl: 300)
            lookup.value.answered(number, answer, by: "resolv.conf: 192.0.2.53")
        }
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

    @Test func bothFamiliesAreTaken() throws {
        let found = try run(finding: [.v4(192, 0, 2, 1), IPAddress("2001:db8::1")!]) { find(server, $0, $1) }
        #expect(found == .known([Endpoint("[2001:db8::1]:853")!, Endpoint("192.0.2.1:853")!]))
        #expect(log.all.isEmpty)
    }

    /// It begins again without a further need, and the former network's answer is not taken.
    @Test func inAnotherNetworkALookupUnderWayBeginsAgain() throws {
        let server = server
        let (asked, found) = (Arrivals<ClientNumber>(), Arrivals<ServerEndpoints>())
        try run(finding: nil) { loop, lookup in
            loop.submit {
                lookup.value.ask = { _, type, number in if type == .a { asked.append(number) } }
                lookup.value.endpoints(of: server, at: Tick(nanoseconds: Clock.now())) { found.append($0) }
            }
            let former = try #require(asked.next())
            loop.submit { lookup.value.networkChanged(at: Tick(nanoseconds: Clock.now())) }
            let present = try #require(asked.next())
            loop.submit {
                for (number, last) in [(former, 1), (present, 2)] as [(ClientNumber, UInt8)] {
                    let answer = Answer.addresses(
                        Name("www.example.com")!, type: .a, [.v4(192, 0, 2, last)], ttl: 300)
                    lookup.value.answered(number, answer, by: "resolv.conf: 192.0.2.53")
                }
            }
            #expect(found.next() == .known([Endpoint("192.0.2.2:853")!]))
        }
    }

    @Test func aNameThatCannotBeFoundIsSaidWithTheReason() throws {
        let found = try run(finding: []) { loop, lookup in
            let found = find(server, loop, lookup)
            // The failure is known: the name is not looked up again so soon.
            #expect(find(server, loop, lookup) == found)
            return found
        }
        let reason = "resolv.conf: 192.0.2.53: no record"
        #expect(found == .unknown(Failure(.unreachable, "no address of www.example.com: \(reason)")))
        #expect(
            log.all == ["warning no address of www.example.com is found, and its servers are not asked: \(reason)"])
    }

    @Test func itNeverLeadsBackHere() throws {
        let listening = Endpoint(.v4(0, 0, 0, 0), port: 853)
        let found = try run(listening: [listening], finding: [.v4(127, 0, 0, 1)]) { find(server, $0, $1) }
        guard case .unknown = found else {
            Issue.record("\(String(describing: found))")
            return
        }
        #expect(log.all.first?.contains("www.example.com leads to 127.0.0.1:853, which is this daemon itself") == true)
    }

    @Test func aServerWithAddressesIsNotLookedUp() throws {
        let server = Server(.tls, .name("dns.example"), port: 853, addresses: [.v4(192, 0, 2, 9)])
        #expect(try run(finding: []) { find(server, $0, $1) } == .known([Endpoint("192.0.2.9:853")!]))
    }

    @Test func whatWorkedOutlivesARestartAndASilentNetwork() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: "cache").path
        let file = try ServerAddressFile(beside: path, report: log.report)
        try run(file: file, finding: [.v4(192, 0, 2, 1), .v4(192, 0, 2, 2)]) { loop, lookup in
            #expect(find(server, loop, lookup) != nil)
            try worked(server, "192.0.2.2:853", loop, lookup)
            // The second address is written when the file is closed, since that comes so soon.
            try worked(server, "192.0.2.1:853", loop, lookup)
        }
        try stop(file)
        let text = try String(contentsOfFile: path + ".servers", encoding: .utf8)
        #expect(text.hasSuffix("\nwww.example.com 192.0.2.1 192.0.2.2\n"))
        let mode = try FileManager.default.attributesOfItem(atPath: path + ".servers")[.posixPermissions] as? Int
        #expect(mode == 0o600)

        let again = try ServerAddressFile(beside: path, report: log.report)
        let found = try run(file: again, finding: nil) { find(server, $0, $1) }
        #expect(found == .known([Endpoint("192.0.2.1:853")!, Endpoint("192.0.2.2:853")!]))
        try stop(again)
        #expect(log.all.isEmpty)
    }

    @Test func aFileThatIsNoneOrCannotBeWrittenIsNoHarm() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(
            at: folder.appending(path: "cache.servers"), withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = try ServerAddressFile(beside: folder.appending(path: "cache").path, report: log.report)
        let found = try run(file: file, finding: [.v4(192, 0, 2, 1)]) { loop, lookup in
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

    @Test func whatCannotBeWrittenForAWhileIsWrittenAtTheEnd() throws {
        // A file at first, so that nothing can be written in it.
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try "".write(to: folder, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: "cache").path
        let file = try ServerAddressFile(beside: path, report: log.report)
        try run(file: file, finding: [.v4(192, 0, 2, 1)]) { loop, lookup in
            #expect(find(server, loop, lookup) != nil)
            try worked(server, "192.0.2.1:853", loop, lookup)
        }
        let end = Clock.now() + 10_000_000_000
        while log.all.isEmpty, Clock.now() < end { usleep(1000) }
        #expect(log.all.count == 1)
        try FileManager.default.removeItem(at: folder)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try stop(file)
        #expect(try String(contentsOfFile: path + ".servers", encoding: .utf8).contains("www.example.com 192.0.2.1\n"))
    }

    private func stop(_ file: ServerAddressFile) throws {
        let gate = Gate()
        file.stop { gate.open() }
        #expect(gate.wait())
    }
}
