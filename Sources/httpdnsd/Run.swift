import Addresses
import ArgumentParser
import Configuration
import Daemon
import Transport

/// The life of the daemon in order.
struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Run the daemon in the foreground (the default).")

    @OptionGroup var options: ConfigurationOptions

    @Option(
        help: "Listen on ADDRESS:PORT, in the place of listen.addresses; may be given again.",
        transform: Endpoint.init(argument:))
    var listen: [Endpoint] = []

    func run() throws {
        try ending {
            var loaded = try options.load()
            if !listen.isEmpty { loaded.settings.listen.addresses = listen }
            let signals = Signals()
            let daemon = try loaded.naming { () throws(StartFailure) in
                try Daemon(
                    loaded.settings, environment: Environment.variables, log: loaded.settings.log.level.logger)
            }
            try loaded.naming(daemon.start)
            ServiceManager.ready()
            let reason = signals.untilStopped(counters: daemon.logCounters)
            ServiceManager.stopping()
            waiting { done in daemon.stop(because: reason) { done(()) } }
        }
    }
}

extension Endpoint {
    /// From a command's argument.
    init(argument: String) throws {
        guard let endpoint = Endpoint(argument) else {
            throw ValidationError("\(argument) is not ADDRESS:PORT, as 127.0.0.1:53 or [::1]:53 is")
        }
        self = endpoint
    }
}
