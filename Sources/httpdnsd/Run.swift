import ArgumentParser
import Base
import Configuration
import Control
import Daemon
import Log
import Transport

/// The life of the daemon in order.
struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run the daemon in the foreground (the default).")

    @OptionGroup var options: ConfigurationOptions

    @Option(
        help: "Listen on ADDRESS:PORT, instead of listen.addresses; may be given again.",
        transform: Endpoint.init(argument:))
    var listen: [Endpoint] = []

    init() {}

    /// `run` alone or with `-c FILE`, made without the parser, whose type lookups are 8 of the 37 million instructions
    /// of a start. Nil if the words need the parser.
    init?(asServices words: ArraySlice<String>) {
        var options = ConfigurationOptions()
        switch words.count {
        case 0: options.file = nil
        case 2 where words.first == "-c" && !words.last!.hasPrefix("-"): options.file = words.last
        default: return nil
        }
        self.options = options
        listen = []
    }

    func run() throws {
        try ending {
            var loaded = try options.load(waits: true, listen: listen)
            var hadSections = loaded.origins.hasSections
            let signals = Signals(reloads: true)
            let log = LogWriter(LogForm(loaded.settings.log.format))
            defer { log.flush() }
            let logger = log.logger(loaded.settings.log.level)
            let daemon = try loaded.naming { () throws(StartFailure) in
                try Daemon(
                    loaded.settings, loaded.origins, environment: Environment.variables, log: logger,
                    logLinesLost: { log.linesLost }, reload: signals.reload)
            }
            for remark in loaded.remarks { logger.warning("\(remark)") }
            loaded.settings.forgetFiles()
            try loaded.naming(daemon.start)
            ServiceManager.ready()
            let reason = signals.untilStopped(counters: daemon.logCounters, reload: { reload(daemon, &hadSections) })
            ServiceManager.stopping()
            waiting { done in daemon.stop(because: reason) { done(()) } }
        }
    }

    /// Reads the configuration again. An invalid configuration changes nothing, nor does a file that has lost all its
    /// sections, or is gone, as while it is being replaced.
    /// - Parameter hadSections: Whether the file has had a section.
    private func reload(_ daemon: Daemon, _ hadSections: inout Bool) -> ReloadOutcome {
        ServiceManager.reloading()
        defer { ServiceManager.ready() }
        do {
            let loaded = try options.load(waits: false, listen: listen)
            guard loaded.origins.hasSections || !hadSections else {
                throw Ending.configuration(
                    "\(loaded.path): it is gone, or has no section any more; write it, or restart to go on without it")
            }
            let line = try loaded.naming { () throws(StartFailure) in
                try daemon.reload(loaded.settings, loaded.origins)
            }
            hadSections = loaded.origins.hasSections
            return .done(line)
        } catch {
            let ending = Ending(error)
            if case .configuration(let line) = ending { return .wrong(daemon.reloadFailed(line)) }
            return .unreadable(daemon.reloadFailed(ending?.line ?? "\(error)"))
        }
    }
}

extension Endpoint {
    /// An endpoint from a command's argument.
    init(argument: String) throws {
        let endpoint = try parsed(
            Endpoint(argument, allowsZone: true)?.unmapped, argument, as: "ADDRESS:PORT, as 127.0.0.1:53 or [::1]:53 is"
        )
        guard !endpoint.address.isIPv6LinkLocal || endpoint.zone != nil else {
            throw ValidationError("\(argument) lacks its link, as [\(endpoint.address)%eth0]:\(endpoint.port) has it")
        }
        self = endpoint
    }
}
