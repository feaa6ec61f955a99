import ArgumentParser
import Base
import Configuration
import Control
import DNSWire
import Daemon
import Transport

/// The option of commands that talk to the running daemon.
struct ControlOptions: ParsableArguments {
    @OptionGroup var configuration: ConfigurationOptions

    @Option(help: "The daemon's control socket, instead of control.socket.")
    var socket: String?

    /// Locates the daemon's socket.
    /// - Parameter saysMistake: Whether a mistake in the settings is printed. The running daemon has other settings in
    ///   effect, and is asked anyway.
    func find(saysMistake: Bool = true) -> RunningDaemon {
        if let socket { return RunningDaemon(path: socket) }
        let (path, mistake, contents) = configuration.controlSocket()
        if saysMistake, let mistake { StandardError.write(mistake, isError: false) }
        let isNamed = configuration.file != nil || Environment.variables["HTTPDNSD_CONTROL_SOCKET"] != nil
        // A daemon keeps the socket of its start while the file names another one.
        let usual = Settings().control.socket
        let candidates = isNamed ? [path] : ([path, usual] + DemoFolder.sockets).eachOnce
        // A daemon that was killed leaves its socket.
        let answered = candidates.count > 1 ? candidates.first(where: UnixListener.isAnswered) : nil
        // It may also be another daemon than the file's.
        if answered == usual, path != usual {
            StandardError.write("no daemon answers at control.socket: the one at \(usual) is asked", isError: false)
        }
        return RunningDaemon(path: answered ?? path, mistake: mistake, contents: contents)
    }

    /// Prints the secrets that the daemon does not have yet.
    func reportSecretsNotInUse() {
        guard socket == nil else { return }
        for file in configuration.secretsNotInUse {
            StandardError.write(
                "\(file) is newer than what the daemon has, which reads it only when it starts: systemctl restart httpdnsd",
                isError: false)
        }
    }
}

/// The running daemon, reached through its control socket.
struct RunningDaemon {
    /// The path of the daemon's socket; empty if the daemon has no socket.
    let path: String
    /// The first mistake in the settings that name the socket, on one line.
    var mistake: String?
    /// The contents of the file with these settings; nil: the file was not read.
    var contents: Result<String?, any Error>?

    /// The path of the socket.
    /// - Throws: An ending if there is no socket.
    func socket() throws -> String {
        guard !path.isEmpty else { throw Ending.unreachable("control.socket is off: give --socket, or a path there") }
        return path
    }

    /// Sends a request to the daemon and returns its response.
    /// - Parameter parameters: Names and values.
    func ask(
        _ route: ControlRoute, _ parameters: [(String, String)] = [], asJSON: Bool = false
    ) throws -> ControlClient.Response {
        let client = try ControlClient(socket())
        let all = parameters + (asJSON ? [("format", "json")] : [])
        let result: Result<ControlClient.Response, ControlClient.Failed> = waiting { client.send(route, all, $0) }
        return try result.mapError(unreachable).get()
    }

    /// The ending for an unreachable daemon. For the packaged daemon, the ending has the next command to type.
    func unreachable(_ failure: ControlClient.Failed) -> Ending {
        let isPackaged = path == Settings().control.socket && SystemFile.isThere("/run/systemd/system")
        let more = isPackaged && !failure.isForbidden ? "; systemctl status httpdnsd says more" : ""
        return .unreachable("\(failure)\(more)")
    }
}

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Say how the running daemon is and what it has done.")

    @OptionGroup var options: ControlOptions

    @Flag(help: "As JSON.")
    var json = false

    @Flag(help: "End with 0 if every queue of the daemon makes progress, else with 69; print nothing then but why not.")
    var alive = false

    @Flag(help: "End with 0 if the daemon could answer a question now, else with 69; print nothing then but why not.")
    var ready = false

    func validate() throws {
        if [json, alive, ready].count(where: { $0 }) > 1 {
            throw ValidationError("--json, --alive and --ready say different things; give one of them")
        }
    }

    func run() throws {
        try ending {
            guard alive || ready else {
                try options.find().ask(.status, asJSON: json).show(asJSON: json)
                return options.reportSecretsNotInUse()
            }
            let response = try options.find().ask(alive ? .health : .ready)
            guard response.isFine else {
                throw Ending.unreachable("not \(alive ? "alive" : "ready"): \(response.line)")
            }
        }
    }
}

struct Flush: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "flush",
        abstract: "Make the running daemon forget names, all types of each.")

    @OptionGroup var options: ControlOptions

    @Argument(help: "Names to forget; those under them stay.", transform: Name.init(explained:))
    var names: [Name] = []

    @Option(
        help: ArgumentHelp("Forget this name and all names under it; may be given again.", valueName: "name"),
        transform: Name.init(explained:))
    var under: [Name] = []

    @Flag(help: "Forget all names.")
    var all = false

    func validate() throws {
        guard !all || names.isEmpty && under.isEmpty else {
            throw ValidationError("--all forgets these names as well; give one or the other")
        }
        guard all || !names.isEmpty || !under.isEmpty else {
            throw ValidationError("say which names are to be forgotten: NAME..., --under NAME or --all")
        }
    }

    func run() throws {
        try ending {
            let scopes = names.map { ("name", "\($0)") } + (all ? [Name.root] : under).map { ("under", "\($0)") }
            let daemon = options.find()
            var sum = 0
            // Each request holds as many names as fit into a request.
            for start in stride(from: 0, to: scopes.count, by: Self.atOnce) {
                let response = try daemon.ask(.flush, Array(scopes[start...].prefix(Self.atOnce)))
                guard response.isFine, let count = Int(response.text.prefix { $0.isNumber }) else {
                    return try response.show()
                }
                sum += count
            }
            StandardOutput.say("\(counted(sum, "answer")) forgotten")
        }
    }

    /// The number of names that always fit into a request, even names of the greatest length with every octet escaped.
    private static let atOnce = 4
}

struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Have the running daemon read its configuration again, without losing a question.",
        discussion: "It ends with 78 if the configuration is wrong; the settings of before stay then.")

    @OptionGroup var options: ControlOptions

    func run() throws {
        try ending {
            // The daemon reports and counts the mistakes itself.
            let daemon = options.find(saysMistake: false)
            let response: ControlClient.Response
            do {
                response = try daemon.ask(.reload)
            } catch Ending.unreachable(let why) {
                if let mistake = daemon.mistake { throw Ending.configuration(mistake) }
                // Under systemd, a daemon without control socket gets the signal HUP.
                guard SignalSource.hangup(toProcess: Environment.variables["MAINPID"] ?? "") else {
                    throw Ending.unreachable(why)
                }
                return
            }
            if response.isOfWrongConfiguration { throw Ending.configuration(response.line) }
            if response.isOfUnreadableConfiguration { throw Ending.system(response.line) }
            try response.show()
            options.reportSecretsNotInUse()
        }
    }
}

extension ControlClient.Response {
    /// The text without its final line end, which printing adds again.
    var line: String { text.hasSuffix("\n") ? String(text.dropLast()) : text }

    /// Prints the response, or ends with its error.
    /// - Parameter asJSON: Whether the output is for programs.
    func show(asJSON: Bool = false) throws {
        guard isFine else { throw Ending.unreachable(line) }
        if asJSON { StandardOutput.write(line) } else { StandardOutput.say(line) }
    }
}
