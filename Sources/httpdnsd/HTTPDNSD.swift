import ArgumentParser
import Base
import Configuration
import Transport

// The names of commands are explicit: deriving them from types in ArgumentParser costs a start some milliseconds.
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

    /// Starts a daemon without the tree of all commands, and without the parser in the form that services use.
    /// Arguments that `run` alone does not accept, such as requests for help, go through the tree.
    static func main() {
        ProgramMemory.shareHeap()
        let words = Environment.arguments
        let isRun = words.first == Run.configuration.commandName
        guard isRun, let run = Run(asServices: words.dropFirst()) ?? (try? Run.parse(Array(words.dropFirst()))) else {
            if let unknown = unknown(words) {
                StandardError.write(unknown)
                exit(withError: ExitCode(Ending.usage("").code))
            }
            return runCommand(words)
        }
        do {
            try run.run()
        } catch {
            Run.exit(withError: error)
        }
    }

    private static func runCommand(_ words: [String]) {
        do {
            var command = try parseAsRoot(words)
            try command.run()
        } catch {
            let (code, text) = (exitCode(for: error), fullMessage(for: error))
            guard !code.isSuccess, !text.isEmpty else { exit(withError: error) }
            // The parser repeats a wrong argument as it is, with characters that command a terminal.
            StandardError.write(text)
            exit(withError: code)
        }
    }

    /// The error for an unknown command, for which the parser would print the usage of `run`.
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
