import ArgumentParser
import Base
import Configuration
import Daemon
import DemoService
import Log
import Transport

/// Runs the daemon with an HTTPDNS service on loopback: the true code paths without an account, root or network.
struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the daemon with an embedded HTTPDNS service: no account, no root, no network needed.")

    @Option(
        help: "Listen on ADDRESS:PORT; may be given again.", transform: Endpoint.init(argument:))
    var listen: [Endpoint] = [Endpoint(.v4(127, 0, 0, 1), port: 5300)]

    func run() throws {
        try ending {
            let signals = Signals()
            let service: DemoService
            do throws(DemoError) {
                service = try DemoService(resolver: Daemon.fallbackServers(Settings()).lazy.flatMap(\.endpoints).first)
            } catch {
                throw Ending.system("\(error)")
            }
            let settings = settings(service)
            let log = LogWriter(LogForm(settings.log.format))
            defer { log.flush() }
            let daemon: Daemon
            do throws(StartFailure) {
                daemon = try Daemon(
                    settings, log: LogThreshold(settings.log.level.threshold).logger(log))
                try daemon.start()
            } catch .setting(_, let message) {
                throw Ending.configuration(message)
            } catch .system(let message) {
                throw Ending.system(message)
            }
            say(service)
            ProgramMemory.forgetUnusedCode()
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
        var httpdns = Settings.HTTPDNS(credential: .https(token: Secret(service.account.token)))
        httpdns.dnsIp = [service.https]
        // A proxy could not reach this machine's loopback.
        httpdns.proxy = .ignore
        // Loopback needs no route, by which `auto` would choose the families.
        httpdns.addressType = .dual
        settings.httpdns = httpdns
        settings.tls.anchors = service.certificatePEM
        return settings
    }

    private func say(_ service: DemoService) {
        let (address, port) = (listen[0].address, listen[0].port)
        let dig = "dig @\(address) -p \(port)"
        StandardOutput.write(
            """
            An HTTPDNS service runs on \(service.https) (https) and \(service.http) (aes, des); the daemon asks it \
            over https.

            Ask the daemon in another terminal:
                \(dig) example.com
                \(dig) example.com AAAA
                \(dig) example.com +tcp
                \(dig) example.com MX

            Ctrl-C ends both.
            """)
    }
}
