import ArgumentParser
import Base
import Configuration
import Daemon
import Transport

// The commands are named: what ArgumentParser would make of the names of their types costs a start some milliseconds.
@main
struct HTTPDNSD: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "httpdnsd",
        abstract: "Answers ordinary DNS through an encrypted HTTPDNS service.",
        version: Version.current,
        subcommands: [
            Run.self, Check.self, Reload.self, Status.self, Flush.self, Explain.self, Watch.self, Query.self,
            ProbeCommand.self, HostCommand.self, Demo.self,
        ],
        defaultSubcommand: Run.self)

    /// A daemon starts without the tree of all commands, and as services start it without the parser, too; whatever `run` alone
    /// does not understand, as requests for help, goes through the tree.
    static func main() {
        Heap.share()
        let words = Environment.arguments
        let isRun = words.first == Run.configuration.commandName
        guard isRun, let run = Run(asServices: words.dropFirst()) ?? (try? Run.parse(Array(words.dropFirst()))) else {
            if let unknown = unknown(words) {
                StandardError.write(unknown)
                exit(withError: ExitCode(Ending.usage("").code))
            }
            return main(words)
        }
        do {
            try run.run()
        } catch {
            Run.exit(withError: error)
        }
    }

    /// What is wrong with the command, if that is no command, for which the parser would say what `run` takes.
    private static func unknown(_ words: [String]) -> String? {
        let commands = configuration.subcommands.compactMap { $0.configuration.commandName }
        let word = words.first == "help" ? words.dropFirst().first : words.first
        guard let word, !word.hasPrefix("-"), word != "help", !commands.contains(word) else { return nil }
        guard let meant = Nearest.word(word, of: commands + ["help", "--version"]) else {
            return "unknown command \"\(word)\"; there are \(commands.joined(separator: ", "))"
        }
        return "unknown command \"\(word)\"; did you mean \"\(meant)\"?"
    }
}
