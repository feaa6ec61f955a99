import ArgumentParser
import Base
import Configuration
import Control
import DNSWire
import Daemon
import Transport

/// The option of commands that ask the running daemon.
struct ControlOptions: ParsableArguments {
    @OptionGroup var configuration: ConfigurationOptions

    @Option(help: "The daemon's control socket, instead of control.socket.")
    var socket: String?

    /// Makes a client of the daemon's socket.
    func connecting<Client>(_ make: (String) throws(SystemError) -> Client) throws -> Client {
        let path = try socket ?? demoSocket ?? configuration.controlSocket()
        guard !path.isEmpty else { throw Ending.unreachable("control.socket is off: give --socket, or a path there") }
        do throws(SystemError) {
            return try make(path)
        } catch {
            throw Ending.system("\(error)")
        }
    }

    /// The socket of a `demo` that runs, if no daemon does and nothing says which one is meant.
    private var demoSocket: String? {
        let environment = Environment.variables
        guard configuration.file == nil, environment["HTTPDNSD_CONTROL_SOCKET"] == nil,
            let usual = try? configuration.controlSocket(), !SystemFile.isThere(usual)
        else { return nil }
        let folder = DemoFolder.usual
        return OwnFolder.isOwn(folder.path) && SystemFile.isThere(folder.socket) ? folder.socket : nil
    }

    /// Sends a request to the daemon and returns its response.
    func ask(_ request: ControlClient.Request) throws -> ControlClient.Response {
        let client = try connecting { path throws(SystemError) in try ControlClient(path) }
        switch waiting(for: { client.send(request, $0) }) {
        case .success(let response): return response
        case .failure(let failure): throw Ending.unreachable("\(failure)")
        }
    }

    /// Prints the daemon's response, or ends with its error.
    /// - Parameter asJSON: it is for programs.
    func show(_ request: ControlClient.Request, asJSON: Bool = false) throws {
        let response = try ask(request)
        guard response.isFine else { throw Ending.unreachable(response.line) }
        if asJSON { StandardOutput.write(response.line) } else { StandardOutput.say(response.line) }
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
            guard alive || ready else { return try options.show(.status(asJSON: json), asJSON: json) }
            let response = try options.ask(alive ? .alive : .ready)
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
            let scopes = all ? [NameScope.all] : names.map(NameScope.only) + under.map(NameScope.under)
            // Each request holds as many names as fit.
            for start in stride(from: 0, to: scopes.count, by: Self.atOnce) {
                try options.show(.flush(Array(scopes[start..<min(start + Self.atOnce, scopes.count)])))
            }
        }
    }

    /// This many of the longest names, each octet of them escaped, fit.
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
            var options = options
            var unread: Ending?
            do {
                _ = try options.socket ?? options.configuration.controlSocket()
            } catch let ending as Ending {
                // What is wrong is the daemon's to say, and to count.
                (unread, options.socket) = (ending, Settings().control.socket)
            }
            let response: ControlClient.Response
            do {
                response = try options.ask(.reload)
            } catch Ending.unreachable(let why) {
                if let unread { throw unread }
                // For systemd, where the daemon has no control socket.
                guard SignalSource.hangup(toProcess: Environment.variables["MAINPID"] ?? "") else {
                    throw Ending.unreachable(why)
                }
                return
            }
            if response.isOfWrongConfiguration { throw Ending.configuration(response.line) }
            if response.isOfUnreadableConfiguration { throw Ending.system(response.line) }
            guard response.isFine else { throw Ending.unreachable(response.line) }
            StandardOutput.say(response.line)
        }
    }
}

extension ControlClient.Response {
    /// The text without its final line end, which printing adds again.
    var line: String { text.hasSuffix("\n") ? String(text.dropLast()) : text }
}
