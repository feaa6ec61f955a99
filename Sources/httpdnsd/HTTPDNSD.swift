import ArgumentParser
import Base
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
            ProbeCommand.self, Demo.self,
        ],
        defaultSubcommand: Run.self)

    /// A daemon starts without the tree of all commands; whatever `run` alone does not understand, as requests for help,
    /// goes through the tree.
    static func main() {
        let words = Environment.arguments
        guard words.first == Run.configuration.commandName, let run = try? Run.parse(Array(words.dropFirst())) else {
            return main(words)
        }
        do {
            try run.run()
        } catch {
            Run.exit(withError: error)
        }
    }
}
