import Base
import Configuration
import Counters
import DNSWire
import Dispatch
import Forwarding
import Log
import ShellTestSupport
import Synchronization
import Testing
import Transport

@testable import Daemon

/// A reload of a whole daemon, on loopback.
@Suite struct ReloadTests {
    @Test func whatIsLoggedIsInEffectAlready() throws {
        var settings = Settings.withoutFiles
        settings.listen.addresses = [Endpoint(.v4(127, 0, 0, 1), port: 0)]
        settings.listen.workers = 1
        settings.control.socket = ""
        let running = Mutex<Daemon?>(nil)
        let lines = Arrivals<(line: String, isInEffect: Bool)>()
        let logger = Logger(.debug) { line in
            running.withLock { daemon in
                if let daemon { lines.append((line.text, !daemon.forwarderLoop.refuses(IPAddress("192.0.2.7")!))) }
            }
        }
        let daemon = try Daemon(settings, log: logger)
        try daemon.start()
        running.withLock { $0 = daemon }
        settings.listen.allow.append(Network("192.0.2.0/24")!)
        settings.httpdns = Settings.Group(credential: .https(token: Secret(Array("t".utf8))))
        try daemon.reload(settings)
        running.withLock { $0 = nil }
        var seen: [String: Bool] = [:]
        while !lines.isEmpty, let (line, isInEffect) = lines.next() { seen[line] = isInEffect }
        for line in ["HTTPDNS by https at 119.29.29.99:443", "the configuration was read again: listen.allow, httpdns"]
        {
            #expect(seen[line] == true, "\(seen)")
        }
        expectEnd { daemon.stop(because: "the end", $0) }
    }

    /// A thread that serves TLS may not run for long on a busy machine.
    @Test(.timeLimit(.minutes(1))) func noServerOfClientsHoldsAReloadUp() throws {
        var settings = Settings.withoutFiles
        settings.listen.addresses = [Endpoint(.v4(127, 0, 0, 1), port: 0)]
        settings.listen.workers = 1
        settings.control.socket = ""
        let daemon = try Daemon(settings, log: LogLines().report.log)
        try daemon.start()
        let gate = DispatchSemaphore(value: 0)
        daemon.streams[0].loop.submit { gate.wait() }
        try daemon.reload(settings)
        gate.signal()
        expectEnd { daemon.stop(because: "the end", $0) }
    }

    /// Each change of `listen.allow` is judged by the sockets in use.
    @Test func whoMayAskIsRemarkedOn() throws {
        var settings = Settings.withoutFiles
        settings.listen.addresses = [Endpoint(IPAddress(v4: 0), port: 0)]
        settings.listen.workers = 1
        settings.control.socket = ""
        let lines = LogLines()
        let daemon = try Daemon(settings, log: lines.report.log)
        try daemon.start()
        let socket = daemon.sockets.endpoints[0]
        var seen: [String] = []
        for allow in ["127.0.0.0/8", "0.0.0.0/0", "0.0.0.0/0", "192.0.2.0/24"] {
            settings.listen.allow = [Network(allow)!]
            try daemon.reload(settings)
            seen = lines.all.filter { $0.hasPrefix("warning listen.allow has ") }
        }
        #expect(seen.count == 2, "\(seen)")
        #expect(seen.first?.hasPrefix("warning listen.allow has 0.0.0.0/0, and \(socket) is not loopback") == true)
        #expect(seen.last?.hasPrefix("warning listen.allow has no 127.0.0.1: ") == true)
        expectEnd { daemon.stop(because: "the end", $0) }
    }

    /// The upstream of a group is found by its number, and is made only for settings that differ from those in effect.
    @Test func aRefusedReloadLeavesEachGroupItsNumber() throws {
        func settings(_ keys: String) throws -> Settings {
            var settings = try Settings.load("[upstreams.shop]\n\(keys)")
            (settings.fallback.hosts, settings.fallback.resolvConf) = ([], [])
            return settings
        }
        let account = try settings(
            """
            provider = "tencent"
            encryptType = "aes"
            dnsId = 1
            dnsKey = "0123456789abcdef"
            dnsIp = ["192.0.2.1"]
            domains = ["shop.example"]
            """)
        let refused = try settings("servers = [\"192.0.2.1\"]\ndomainsFile = \"/nonexistent/names\"\n")
        let forwarder = try ForwarderLoop(report: LogLines().report)
        var numbers = GroupNumbers()
        forwarder.begin(try forwarder.prepare(account, after: nil, &numbers, Provenance()))
        let number = numbers["shop"]
        #expect(throws: StartFailure.self) {
            _ = try forwarder.prepare(refused, after: account, &numbers, Provenance())
        }
        _ = try forwarder.prepare(account, after: account, &numbers, Provenance())
        #expect(numbers["shop"] == number)
    }
}

extension ForwarderLoop {
    /// Whether listeners refuse a client now.
    func refuses(_ client: IPAddress) -> Bool {
        let frontend = CurrentFrontend.Copy(of: self.frontend).current
        let message = query(example)
        var reply = [UInt8](repeating: 0, count: Reply.maximumUDPSize)
        var room = reply.mutableSpan
        let outcome = frontend.receive(
            frontend.read(message.span), message.span, from: client, at: Tick(nanoseconds: Clock.now()), limit: nil,
            tally: Tally(.udp), into: &room)
        if case .ask = outcome {
            queue.leave(frontend.links.source(of: client))
            return false
        }
        return responseCode(reply) == 5
    }
}
