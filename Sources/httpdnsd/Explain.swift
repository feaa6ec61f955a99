import ArgumentParser
import Base
import Control
import DNSWire
import Daemon
import Transport

struct Explain: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Say where a name goes and why, what is cached of it, and what each server says right now.",
        discussion: """
            Without a running daemon, and with --socket "", it says what the configuration alone does, and asks no server.
            """)

    @Argument(help: "The name.", transform: Name.init(explained:))
    var name: Name

    @Argument(
        help: ArgumentHelp("The type: A, AAAA, MX, TYPE65 and so on.", valueName: "type"),
        transform: RecordType.init(argument:))
    var type = RecordType.a

    @OptionGroup var options: ControlOptions

    @Flag(help: "As JSON.")
    var json = false

    @Flag(help: "Ask HTTPDNS as well, which bills for it.")
    var ask = false

    func run() throws {
        try ending {
            if let socket = options.socket, socket.isEmpty { return try explainAlone("no daemon was to be asked") }
            let question = [("name", "\(name)"), ("type", "\(type)")] + (ask ? [("ask", "accounts")] : [])
            let daemon = options.find(saysMistake: false)
            let response: ControlClient.Response
            do {
                response = try Progress.during("the daemon asks the servers, for 4 s at most") { _ in
                    try daemon.ask(.explain, question, asJSON: json)
                }
            } catch Ending.unreachable(let why) {
                return try explainAlone(why, daemon.contents)
            }
            if let mistake = daemon.mistake { StandardError.write(mistake, isError: false) }
            if !json, options.socket == nil, let file = options.configuration.file {
                StandardOutput.say(
                    "By the settings of the running daemon; with --socket \"\" by those of \(file) alone")
            }
            try response.show(asJSON: json)
        }
    }

    /// - Parameters:
    ///   - why: The reason for which no running daemon was asked.
    ///   - contents: The contents of the configuration file; nil: it was not read yet.
    private func explainAlone(_ why: String, _ contents: Result<String?, any Error>? = nil) throws {
        let configuration = options.configuration
        let loaded = try configuration.load(
            contents?.get() ?? configuration.contents(waits: true), waits: true)
        let text = try loaded.naming { () throws(StartFailure) in
            try Daemon.explain(
                name, type, by: loaded.settings, loaded.origins, environment: Environment.variables, because: why,
                asJSON: json)
        }
        if json { StandardOutput.write(text) } else { StandardOutput.say(text) }
        if ask { throw Ending.unreachable("no server was asked, which takes a running daemon: \(why)") }
    }
}

extension Name {
    init(explained argument: String) throws {
        if let address = IPAddress(argument) {
            throw ValidationError("\(argument) is an address; its reverse name is \(Name.reverse(of: address))")
        }
        if let scheme = argument.firstRange(of: "://") {
            let host = argument[scheme.upperBound...].prefix { !"/:?#".contains($0) }
            throw ValidationError("\(argument) is a URL; give the name in it, \(host)")
        }
        guard argument.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw ValidationError(
                "\(argument) has letters that are not ASCII; give the name as DNS has it, xn--… (idn2 says it)")
        }
        self = try parsed(Name(argument), argument, as: "a domain name")
    }
}

extension RecordType {
    init(argument: String) throws {
        self = try parsed(RecordType(parsing: argument), argument, as: "a record type, as A, HTTPS and TYPE65 are")
    }
}
