import Base
import Configuration
import DNSWire
import Foundation
import ShellTestSupport
import Testing
import Transport

@testable import Forwarding
@testable import Upstreams

/// The reporter over real sockets. The test passes it moments that are ahead of the clock, when a batch is due.
@Suite struct AbnormalReporterTests {
    private let log: LogLines

    init() { self.init(log: LogLines()) }
    private init(log: LogLines) { self.log = log }

    private func settings(_ url: String) throws -> Settings.Group {
        let environment = [
            "HTTPDNSD_HTTPDNS_ENCRYPTTYPE": "aes", "HTTPDNSD_HTTPDNS_DNSID": "12345",
            "HTTPDNSD_HTTPDNS_DNSKEY": "Swift-HTTPDNS-16", "HTTPDNSD_HTTPDNS_ENABLEREPORT": "true",
            "HTTPDNSD_HTTPDNS_REPORTURL": url,
        ]
        let settings = try Settings.load(
            file: nil, contents: nil, environment: environment, readFile: { _ in FileReading(nil) }
        )
        .settings
        return try #require(settings.httpdns)
    }

    private let somethingIsSaid: @Sendable (LogLines) -> Bool = { !$0.all.isEmpty }
    private let twoLinesAreSaid: @Sendable (LogLines) -> Bool = { $0.all.count == 2 }

    private let lookup = AbnormalLookup(
        names: [Name("a.example")!], families: .ipv4, server: Endpoint("119.29.29.98:80").map { Server($0, .account) },
        failure: Failure(.timedOut, "no answer"), spend: 7,
        fellBack: false)

    /// A loop that runs a reporter for the length of `body`. Each deadline is passed to it at once.
    private func run(
        _ settings: Settings.Group, finding found: ServerEndpoints? = nil,
        until isDone: @escaping @Sendable (LogLines) -> Bool = { _ in false },
        _ body: (EventLoop, OnLoop<AbnormalReporter>, Gate) throws -> Void
    ) throws {
        let loop = try EventLoop(label: "test")
        let reporter = OnLoop(
            try AbnormalReporter(
                settings, loop: loop,
                finder: ServerFinder(
                    find: { $2(found ?? .known($0.endpoints)) }, worked: { _, _ in }, allFailed: { _, _ in }),
                report: log.report))
        let gate = Gate()
        let log = log
        loop.turnEnded = {
            // Only while no batch is being sent: so no batch under way is given up.
            if let due = reporter.value.nextDeadline, !reporter.value.isSending { reporter.value.expire(at: due) }
            if isDone(log) { gate.open() }
        }
        loop.start()
        try body(loop, reporter, gate)
        let stopped = Gate()
        loop.submit { reporter.value.close() }
        loop.stop { stopped.open() }
        #expect(stopped.wait())
    }

    @Test func aBatchIsPostedAndWhatFailsComesAgain() throws {
        let server = try ScriptedServer([
            nil, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 Taken\r\n\r\n",
        ])
        let lookup = lookup
        try run(
            try settings("http://127.0.0.1:\(server.endpoint.port)/in?from=here"),
            until: twoLinesAreSaid
        ) { loop, reporter, gate in
            loop.submit { for _ in 0..<3 { reporter.value.add(lookup) } }
            for _ in 0..<3 {
                let request = try #require(server.requests.next())
                #expect(request.hasPrefix("POST /in?from=here HTTP/1.1\r\nHost: 127.0.0.1:\(server.endpoint.port)\r\n"))
                #expect(!request.contains("Swift-HTTPDNS-16"))
                let body = try #require(request.components(separatedBy: "\r\n\r\n").last)
                #expect(request.contains("\r\nContent-Length: \(body.utf8.count)\r\n"))
                let lines = body.split(separator: "\n")
                #expect(lines.count == 3 && body.hasSuffix("}\n"))
                for line in lines {
                    let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                    #expect(object?["req_dn"] as? String == "a.example")
                }
            }
            #expect(gate.wait())
        }
        // One line for each change of state.
        #expect(log.all.count == 2)
        #expect(log.all[0].hasPrefix("warning 127.0.0.1:\(server.endpoint.port) does not take reports"))
        #expect(log.all[1].hasPrefix("notice 127.0.0.1:\(server.endpoint.port) takes reports"))
    }

    @Test func aNameIsLookedUp() throws {
        let server = try ScriptedServer(["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"])
        let lookup = lookup
        try run(
            try settings("http://collector.example:\(server.endpoint.port)/"), finding: .known([server.endpoint])
        ) { loop, reporter, _ in
            loop.submit { reporter.value.add(lookup) }
            #expect(server.requests.next()?.contains("\r\nHost: collector.example:\(server.endpoint.port)\r\n") == true)
        }
    }

    @Test func aNameThatCannotBeLookedUpIsSaid() throws {
        let lookup = lookup
        let failure = Failure(.unreachable, "no address of collector.example: no group may be asked for it")
        try run(try settings("https://collector.example/"), finding: .unknown(failure), until: somethingIsSaid) {
            loop, reporter, gate in
            loop.submit { reporter.value.add(lookup) }
            #expect(gate.wait())
        }
        #expect(log.all.first?.contains(failure.detail) == true)
    }

    /// A reload or another network begins the lookup again, so it can last longer than the attempt.
    @Test func aServerThatIsFoundLateGetsNoReport() throws {
        let server = try ScriptedServer(["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"])
        let (loop, lookup) = (try EventLoop(label: "test"), lookup)
        let settings = try settings("http://collector.example:\(server.endpoint.port)/")
        let found = OnLoop<[(ServerEndpoints) -> Void]>([])
        let reporter = OnLoop(
            try AbnormalReporter(
                settings, loop: loop,
                finder: ServerFinder(
                    find: { found.value.append($2) }, worked: { _, _ in }, allFailed: { _, _ in }),
                report: log.report))
        loop.start()
        loop.submit {
            reporter.value.add(lookup)
            // The first batch is due, is given up, and is due again.
            for _ in 0..<3 { if let due = reporter.value.nextDeadline { reporter.value.expire(at: due) } }
            for tell in found.value { tell(.known([server.endpoint])) }
        }
        #expect(server.requests.next()?.contains("a.example") == true)
        let stopped = Gate()
        loop.submit { reporter.value.close() }
        loop.stop { stopped.open() }
        #expect(stopped.wait())
        #expect(found.value.count == 2 && server.requests.isEmpty)
    }

    @Test func withoutAnAddressTheLogGetsThemAndNotTooMany() throws {
        var settings = Settings.Group(credential: .https(token: Secret(Array("67890".utf8))))
        settings.enableReport = true
        let lookup = lookup
        try run(settings) { loop, reporter, _ in
            let done = Gate()
            loop.submit {
                for _ in 0..<1000 { reporter.value.add(lookup) }
                done.open()
            }
            #expect(done.wait())
        }
        // Ten lines in one second, or ten in each of two and a line between.
        #expect((10...21).contains(log.all.count))
        #expect(log.all[0].hasPrefix("info abnormal lookup {\"eventName\":") && !log.all[0].contains("67890"))
    }
}
