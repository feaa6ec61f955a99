import ArgumentParser
import Base
import Configuration
import Daemon
import DemoService
import Log
import Transport

/// Runs the daemon with an HTTPDNS service on loopback: the real code without an account, root or network.
struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Run the daemon with an embedded HTTPDNS service: no account, no root, no network needed.",
        discussion: """
            The daemon is asked over UDP, TCP, TLS and HTTPS. It asks the embedded service for addresses, an embedded resolver \
            for example.net over TLS or HTTPS, and this machine's resolver for everything else.
            """)

    @Option(
        help: ArgumentHelp(
            "Listen on ADDRESS:PORT, instead of 127.0.0.1:5300 or, if that is taken, the next free port; may be given again."
        ),
        transform: Endpoint.init(argument:))
    var listen: [Endpoint] = []

    @Flag(help: "The service fails until Ctrl-C is typed once, so that one sees what the daemon does then.")
    var fail = false

    func run() throws {
        try ending {
            let signals = Signals()
            let service: DemoService
            do {
                service = try Progress.during("making certificates, and a service and a resolver on loopback") { _ in
                    try DemoService(ports: DemoService.usualPorts, isBroken: fail)
                }
            } catch {
                throw Ending.system("\(error)")
            }
            let folder = try DemoFolder.begin()
            defer { folder.remove() }
            let endpoints: DemoFolder.Endpoints = (
                listen: listen.isEmpty ? [Self.free(5300...5309)] : listen, tls: Self.free(5853...5859),
                https: Self.free(5443...5449), page: Self.free(5380...5389)
            )
            let (settings, origins) = try folder.settings(service, endpoints)
            let log = LogWriter(LogForm(settings.log.format))
            defer { log.flush() }
            let daemon = try Daemon(settings, origins, log: log.logger(settings.log.level))
            try daemon.start()
            try say(service, folder, endpoints)
            let mend: (() -> Void)? =
                fail
                ? {
                    service.mend()
                    StandardOutput.say("\nThe service answers again. Ctrl-C ends all of it.")
                } : nil
            let reason = signals.untilStopped(counters: daemon.logCounters, mend: mend)
            waiting { done in daemon.stop(because: reason) { done(()) } }
        }
    }

    /// The first of these loopback ports that no program uses over TCP or UDP; the first port if all are in use.
    private static func free(_ ports: ClosedRange<UInt16>) -> Endpoint {
        let all = ports.map { Endpoint(.v4(127, 0, 0, 1), port: $0) }
        return all.first {
            (try? StreamListener.listen($0)) != nil && (try? DatagramSocket.bind($0, count: 1)) != nil
        } ?? all[0]
    }

    private func say(_ service: DemoService, _ folder: DemoFolder, _ endpoints: DemoFolder.Endpoints) throws {
        let (dig, page) = ("dig @\(endpoints.listen[0].address) -p \(endpoints.listen[0].port)", endpoints.page)
        func kdig(_ endpoint: Endpoint) -> String { "kdig @\(endpoint.address) -p \(endpoint.port)" }
        let (tls, https, path) = (service.dnsOverTLS, service.dnsOverHTTPS, DemoService.dnsOverHTTPSPath)
        let program = Environment.program
        // A program that is not installed is not in the shell's PATH.
        let installed = program.lastIndex(of: "/").map { "    PATH=\(program[..<$0]):$PATH\n" } ?? ""
        let file = folder.configuration
        // Without a file, the commands ask another daemon if one runs, such as the service.
        let option = try ControlOptions.parse([]).find(saysMistake: false).path == folder.socket ? "" : " -c \(file)"
        StandardOutput.write(
            """
            An HTTPDNS service runs on \(service.https), as Tencent Cloud has one.
            A resolver runs on tls://\(tls) and https://\(https)\(path);
            the daemon asks it for example.net, and the resolver of this machine for
            what neither knows. The status page is on http://\(page)/
            \(fail ? "The service fails until you type Ctrl-C here once.\n" : "")
            Ask the daemon, in another terminal:
                \(dig) example.com             # HTTPDNS
                \(dig) example.com AAAA
                \(dig) example.com +tcp
                \(dig) example.net             # DNS over TLS
                \(dig) example.com MX          # this machine's resolver

            See what it does:
            \(installed)    httpdnsd status\(option)
                httpdnsd explain\(option) example.com
                httpdnsd watch\(option)                 # and ask again; Ctrl-C ends it
                httpdnsd flush\(option) example.com
                curl http://\(page)/metrics

            Its account is in a configuration of its own:
                httpdnsd check -c \(file)
                httpdnsd probe -c \(file)
                httpdnsd query -c \(file) example.com

            Ask the daemon over TLS and HTTPS, then the resolver itself (kdig is in
            the package knot-dnsutils):
                \(kdig(endpoints.tls)) +tls example.com
                \(kdig(endpoints.https)) +https example.com
                \(kdig(tls)) +tls example.net
                \(kdig(https)) +https=\(path) example.net

            Ctrl-C ends all of it\(fail ? ", the second time" : "").
            """)
    }
}
