import ArgumentParser
import Base
import Configuration
import Daemon
import DemoService
import Log
import Names
import Transport

/// Runs the daemon with an HTTPDNS service on loopback: the true code paths without an account, root or network.
struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Run the daemon with an embedded HTTPDNS service: no account, no root, no network needed.",
        discussion:
            "example.net is asked of an embedded resolver, over TLS or HTTPS, and all else of the machine's own.")

    @Option(
        help: "Listen on ADDRESS:PORT; may be given again.", transform: Endpoint.init(argument:))
    var listen: [Endpoint] = [Endpoint(.v4(127, 0, 0, 1), port: 5300)]

    @Option(
        help: ArgumentHelp(
            "Whose protocol is spoken: \(Provider.allCases.map(\.rawValue).joined(separator: ", ")).", valueName: "name"
        ),
        transform: Provider.init(argument:))
    var provider = Provider.tencent

    func run() throws {
        try ending {
            let signals = Signals()
            let service: DemoService
            do throws(DemoError) {
                service = try Progress.during("making certificates, and a service and a resolver on loopback") {
                    _ throws(DemoError) in
                    try DemoService()
                }
            } catch {
                throw Ending.system("\(error)")
            }
            let settings = settings(service)
            let log = LogWriter(LogForm(settings.log.format))
            defer { log.flush() }
            let daemon: Daemon
            do throws(StartFailure) {
                daemon = try Daemon(settings, log: log.logger(settings.log.level))
                try daemon.start()
            } catch .setting(_, _, let message, _) {
                throw Ending.configuration(message)
            } catch .system(let message) {
                throw Ending.system(message)
            }
            say(service, daemon)
            let reason = signals.untilStopped(counters: daemon.logCounters)
            waiting { done in daemon.stop(because: reason) { done(()) } }
        }
    }

    /// The configuration of an operator whose account is at the demo service.
    private func settings(_ service: DemoService) -> Settings {
        var settings = Settings()
        settings.listen.addresses = listen
        // It may run beside another daemon, and is stopped with Ctrl-C.
        settings.control.socket = ""
        let account = service.account
        var httpdns = Settings.Group(
            credential: provider == .tencent
                ? .https(token: Secret(account.token))
                : .signed(provider, id: account.id, secret: Secret(account.secret), aesKey: nil))
        httpdns.dnsIp = [service.https]
        // A proxy could not reach this machine's loopback.
        httpdns.proxy = .ignore
        // Loopback needs no route, by which `auto` would choose the families.
        httpdns.addressType = .dual
        settings.httpdns = httpdns
        settings.tls.anchors = service.certificatePEM
        settings.tls.serverName = "\(service.https.address)"
        var resolver = Settings.Group(name: "encrypted")
        resolver.domains = [DomainPattern("example.net")].compactMap(\.self)
        resolver.servers = [
            .server(Server(service.dnsOverTLS, .tls)),
            .server(Server(service.dnsOverHTTPS, .https(path: DemoService.dnsOverHTTPSPath, usesGET: false))),
        ]
        resolver.tls.anchors = service.certificatePEM
        settings.upstreams = [resolver]
        // For the status page.
        settings.control.metrics = Endpoint(.v4(127, 0, 0, 1), port: 0)
        return settings
    }

    private func say(_ service: DemoService, _ daemon: Daemon) {
        let (address, port) = (listen[0].address, listen[0].port)
        let dig = "dig @\(address) -p \(port)"
        let (tls, https, path) = (service.dnsOverTLS, service.dnsOverHTTPS, DemoService.dnsOverHTTPSPath)
        let page = daemon.metricsEndpoint.map { "The status page on http://\($0)/ shows who answers. " } ?? ""
        StandardOutput.write(
            """
            An HTTPDNS service runs on \(service.https) (https) and \(service.http) (aes, des); the daemon asks it \
            over https, as \(provider.facts.title) is asked.
            A resolver runs on tls://\(tls) and https://\(https)\(path); the daemon asks it for example.net. What neither \
            knows, the daemon asks of the resolver of this machine.

            Ask the daemon in another terminal:
                \(dig) example.com             # HTTPDNS
                \(dig) example.com AAAA
                \(dig) example.com +tcp
                \(dig) example.net             # DNS over TLS
                \(dig) example.com MX          # the resolver of this machine

            Ask the resolver itself (kdig is in the package knot-dnsutils):
                kdig @\(tls.address) -p \(tls.port) +tls example.net
                kdig @\(https.address) -p \(https.port) +https=\(path) example.net

            \(page)Ctrl-C ends all of it.
            """)
    }
}

extension Provider {
    fileprivate init(argument: String) throws {
        guard let provider = Provider(rawValue: argument) else {
            throw ValidationError("\(argument) is none of \(Provider.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        self = provider
    }
}
