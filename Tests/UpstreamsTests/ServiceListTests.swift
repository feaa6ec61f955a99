import Base
import Configuration
import Cryptography
import DemoService
import HTTP
import HTTPDNS
import ShellTestSupport
import Streams
import Testing
import Transport

@testable import Upstreams

/// The list over real sockets, by the time of the loop.
@Suite struct ServiceListTests {
    private let log = LogLines()
    private let changes = Arrivals<[String]>()

    private func respond(_ body: String, status: String = "200 OK") -> String {
        "HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private func settings(_ servers: [Endpoint]) -> Settings.Group {
        var settings = Settings.Group(name: "shop", credential: .https(token: Secret(Array("67890".utf8))))
        settings.dnsIp = [Endpoint("192.0.2.1:80")!]
        settings.confIp = servers
        return settings
    }

    /// A loop that runs a list for the length of `body`.
    private func run(
        _ settings: Settings.Group, _ account: (any ServiceAccount)? = nil, tls: TLSPolicy? = nil,
        _ body: (EventLoop, OnLoop<ServiceList?>) throws -> Void
    ) throws {
        let loop = try EventLoop(label: "test")
        let list = OnLoop<ServiceList?>(nil)
        let changes = changes
        list.value = ServiceList(
            settings,
            access: .init(
                account: try account ?? TencentAccount(.https(token: Secret(Array("67890".utf8)))),
                AccountKeys("httpdns", names: "domains.intercept", .https(token: Secret([]))),
                try tls.map { .tls(try TLSClientContext($0), TLSTarget()) } ?? .plain, serverName: nil),
            loop: loop, report: log.report, at: Tick(nanoseconds: Clock.now()))
        list.value?.changed = { changes.append($0.map(\.description)) }
        loop.deadlineReached = { list.value?.expire(at: Tick(nanoseconds: Clock.now())) }
        loop.turnEnded = { loop.setDeadline(list.value?.nextDeadline.nanoseconds) }
        loop.start()
        loop.submit {}
        try body(loop, list)
        let gate = Gate()
        loop.submit {
            list.value?.close()
            list.value = nil
        }
        loop.stop { gate.open() }
        #expect(gate.wait())
    }

    @Test func theSecondServersListIsTakenWhenTheFirstFailsTwice() throws {
        let bad = try ScriptedServer([nil, respond("busy", status: "503 Service Unavailable")])
        let good = try ScriptedServer([respond("log:0|domain:0|ip:192.0.2.98;2001:db8::1;|ttl:60")])
        try run(settings([bad.endpoint, good.endpoint])) { _, _ in
            let port = good.endpoint.port
            #expect(changes.next() == ["192.0.2.98:\(port)", "[2001:db8::1]:\(port)", "192.0.2.1:80"])
        }
        for _ in 0..<2 { #expect(bad.requests.next()?.hasPrefix("GET /conf?token=67890 HTTP/1.1\r\n") == true) }
        #expect(good.requests.next()?.contains("\r\nHost: 127.0.0.1:\(good.endpoint.port)\r\n") == true)
        #expect(log.all.count == 1 && log.all[0].hasPrefix("notice shop is asked at 192.0.2.98:"))
    }

    /// The service's clock is an hour ahead: it refuses the first request, and its time counts for the second.
    @Test func aRefusalCorrectsTheClock() throws {
        let date = String(decoding: HTTPDate.text(WallClock.unixSeconds() + 3600), as: UTF8.self)
        let server = try ScriptedServer([
            "HTTP/1.1 403 Forbidden\r\nDate: \(date)\r\nContent-Length: 0\r\n\r\n",
            respond("{\"service_ip\":[\"192.0.2.98\"],\"service_ipv6\":[]}"),
        ])
        let credential = Credential.signed(
            .alibaba, id: 7, secret: Secret(Array("0123456789abcdef".utf8)), aesKey: nil)
        try run(settings([server.endpoint]), credential.account()) { _, _ in
            #expect(changes.next() == ["192.0.2.98:\(server.endpoint.port)", "192.0.2.1:80"])
        }
        // When each request expires.
        let times = try (0..<2).map { _ in
            let request = try #require(server.requests.next())
            let field = try #require(request.firstRange(of: "&t="))
            let digits = request[field.upperBound...].prefix { $0.isNumber }
            return try #require(Int(digits))
        }
        #expect((3590...3660).contains(times[1] - times[0]))
        #expect(log.all.count == 1 && log.all[0].hasPrefix("notice"))
    }

    /// The list uses an answer while the next round is still far away.
    @Test(arguments: ["log:0|domain:0|ip:|ttl:60", "log:0|domain:0|ip:192.0.2.1|ttl:60"])
    func whatIsConfiguredAlreadyIsNoChange(body: String) throws {
        let server = try ScriptedServer([respond(body)])
        let settled = Gate()
        let changes = Arrivals<[String]>()
        var settings = settings([server.endpoint])
        settings.dnsIp = [Endpoint(.v4(192, 0, 2, 1), port: server.endpoint.port)]
        try run(settings) { loop, list in
            loop.submit {
                list.value?.changed = { changes.append($0.map(\.description)) }
                loop.turnEnded = {
                    guard let next = list.value?.nextDeadline else { return }
                    loop.setDeadline(next.nanoseconds)
                    if next.milliseconds(since: Tick(nanoseconds: Clock.now())) > 60_000 { settled.open() }
                }
            }
            #expect(settled.wait())
        }
        #expect(changes.isEmpty && log.all.isEmpty)
    }

    @Test func aFailureIsSaidOnceWithItsReason() throws {
        let server = try ScriptedServer([respond("<html>")])
        let said = Gate()
        let log = log
        try run(settings([Endpoint("127.0.0.1:1")!, server.endpoint])) { loop, list in
            for _ in 0..<2 { #expect(server.requests.next() != nil) }
            // The round is over when the log says so; the test looks at the end of each turn.
            loop.submit {
                loop.turnEnded = {
                    loop.setDeadline(list.value?.nextDeadline.nanoseconds)
                    if !log.all.isEmpty { said.open() }
                }
            }
            #expect(said.wait())
        }
        #expect(log.all.count == 1)
        #expect(log.all[0].hasPrefix("warning no list of service addresses from 127.0.0.1:1, \(server.endpoint): "))
        #expect(log.all[0].contains("not an HTTPDNS answer; shop is still asked at 192.0.2.1:80"))
        #expect(!log.all[0].contains("67890"))
    }

    @Test(arguments: ["aes", "des"]) func theDemoServicesOwnList(algorithm: String) throws {
        let service = try DemoService()
        let account = try TencentAccount(
            algorithm == "aes"
                ? .aes(id: service.account.id, key: Secret(service.account.aesKey))
                : .des(id: service.account.id, key: Secret(service.account.desKey)))
        try run(settings([service.http]), account) { _, _ in
            #expect(changes.next() == ["127.0.0.1:\(service.http.port)", "192.0.2.1:80"])
        }
        service.stop()
    }

    @Test func theDemoServicesOwnListOverTLS() throws {
        let service = try DemoService()
        let policy = TLSPolicy(serverName: nil, anchors: service.certificatePEM, anchorsOnly: true)
        try run(
            settings([service.https]), try TencentAccount(.https(token: Secret(service.account.token))), tls: policy
        ) {
            _, _ in
            #expect(changes.next() == ["127.0.0.1:\(service.https.port)", "192.0.2.1:80"])
        }
        service.stop()
    }

    @Test func anUntrustedServerIsNotBelieved() throws {
        let service = try DemoService()
        let other = try SelfSignedCertificate.make(names: [], addresses: [.v4(127, 0, 0, 1)], days: 1)
        let policy = TLSPolicy(serverName: nil, anchors: other.certificatePEM, anchorsOnly: true)
        let log = log
        let said = Gate()
        try run(
            settings([service.https]), try TencentAccount(.https(token: Secret(service.account.token))), tls: policy
        ) {
            loop, list in
            loop.submit {
                loop.turnEnded = {
                    loop.setDeadline(list.value?.nextDeadline.nanoseconds)
                    if !log.all.isEmpty { said.open() }
                }
            }
            #expect(said.wait())
        }
        #expect(log.all.count == 1 && log.all[0].contains("certificate"))
        service.stop()
    }
}
