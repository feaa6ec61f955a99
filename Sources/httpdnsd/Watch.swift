public import ArgumentParser
public import Base
import Control
import DNSWire
import Daemon
import Transport

struct Watch: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Show each question that the running daemon answers, as it happens.",
        discussion: """
            A line says when, who asked, over what, the name and type, who answered, how it went, how long it took and, where there \
            is one, the reason. Nothing is kept. What comes faster than it is read is dropped and counted; the daemon \
            never waits. Ctrl-C ends it.
            """)

    @Argument(help: "Names: only these and those under them.", transform: Name.init(explained:))
    var names: [Name] = []

    @OptionGroup var options: ControlOptions

    @Flag(help: "A JSON object a line.")
    var json = false

    @Option(
        help: "Only this type: A, AAAA, MX, TYPE65 and so on. May be given again, as the others.",
        transform: RecordType.init(argument:))
    var type: [RecordType] = []

    @Option(
        help: ArgumentHelp("Only answers with this RCODE: NOERROR, NXDOMAIN, SERVFAIL and so on.", valueName: "code"),
        transform: ResponseCode.init(argument:))
    var rcode: [ResponseCode] = []

    @Option(
        help: ArgumentHelp("Only questions from this address or network.", valueName: "network"),
        transform: Network.init(argument:))
    var client: [Network] = []

    @Option(
        help: ArgumentHelp(
            "Only answers by cache, stale, hosts, daemon (itself), nobody (no server answered) or this group.",
            valueName: "who"))
    var by: [String] = []

    @Option(
        help: ArgumentHelp(
            "Only questions that left this machine in the clear or encrypted, went to a resolver on it (loopback), or were "
                + "answered without asking a server (cache).", valueName: "clear|encrypted|loopback|cache"))
    var way: [Exposure] = []

    @Option(
        help: ArgumentHelp("Only questions that came over UDP, TCP, TLS or HTTPS.", valueName: "udp|tcp|tls|https"))
    var over: [String] = []

    @Option(help: ArgumentHelp("Only answers that took longer than so many milliseconds.", valueName: "ms"))
    var slowerThan: Double?

    func validate() throws {
        if let other = over.first(where: { !WatchFilter.transports.contains($0) }) {
            throw ValidationError(
                "--over is one of \(WatchFilter.transports.joined(separator: ", ")), and not \(other)")
        }
        if let slowerThan, !(slowerThan >= 0 && slowerThan.isFinite) {
            throw ValidationError("--slower-than is a number of milliseconds")
        }
    }

    func run() throws {
        try ending {
            // A slow reader only loses lines. A reader that occupies the daemon's core delays answers.
            Machine.lowerPriority()
            let daemon = options.find()
            let client = try ControlClient(daemon.socket())
            let progress = Progress("no question to show yet; Ctrl-C ends it")
            defer { progress.end() }
            SignalSource.ignoreBrokenPipe()
            let fitted = FittedLines(isWanted: !json)
            let failed: ControlClient.Failed? = waiting { done in
                // The source is retained until the end, since signals end the command.
                let signals = SignalSource([.terminate, .interrupt, .hangup]) { _ in done(nil) }
                client.watch(
                    filter, form,
                    write: { lines in
                        progress.end()
                        return StandardOutput.write(fitted.of(lines))
                    },
                    ended: { failed in withExtendedLifetime(signals) { done(failed) } })
            }
            if let failed { throw failed.isWrongUsage ? Ending.usage("\(failed)") : daemon.unreachable(failed) }
        }
    }

    private var form: WatchText.Form {
        if json { return .json }
        return StandardStream.output.isColoured(Environment.variables) ? .coloured : .plain
    }

    private var filter: WatchFilter {
        var filter = WatchFilter()
        (filter.names, filter.types, filter.codes, filter.clients) = (names, type, rcode, client)
        (filter.by, filter.ways, filter.over, filter.slowerThan) = (by, way, over, slowerThan ?? 0)
        return filter
    }
}

extension Exposure: ExpressibleByArgument {
    public init?(argument: String) { self.init(word: argument) }

    public static var allValueStrings: [String] { allCases.reversed().map(\.word) }
}

/// Lines that come in pieces. Each line is fitted to the present width of the terminal. Used on one queue.
private final class FittedLines: @unchecked Sendable {
    private let isWanted: Bool
    /// The beginning of an incomplete line.
    private var begun: [UInt8] = []

    init(isWanted: Bool) { self.isWanted = isWanted && StandardStream.output.isTerminal }

    func of(_ octets: [UInt8]) -> [UInt8] {
        guard isWanted else { return octets }
        begun += octets
        guard let end = begun.lastIndex(of: UInt8(ascii: "\n")) else { return [] }
        let lines = String(decoding: begun[...end], as: UTF8.self)
        begun.removeSubrange(...end)
        return Array(StandardStream.output.fit(lines).utf8)
    }
}

extension ResponseCode {
    fileprivate init(argument: String) throws {
        self = try parsed(ResponseCode(parsing: argument), argument, as: "an RCODE, as NXDOMAIN and SERVFAIL are")
    }
}

extension Network {
    fileprivate init(argument: String) throws {
        let what = "an address or a network, as 192.0.2.7 and 192.0.2.0/24 are"
        self = try parsed(Network(argument), argument, as: what)
    }
}
