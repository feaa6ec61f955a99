import ArgumentParser
import Base
import Daemon

// The commands are named: what ArgumentParser would make of the names of their types costs a start some milliseconds.
@main
struct HTTPDNSD: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "httpdnsd",
        abstract: "Answers ordinary DNS through an encrypted HTTPDNS service.",
        version: Version.current,
        subcommands: [
            Run.self, Check.self, Status.self, Cache.self, Flush.self, Explain.self, Watch.self, Query.self,
            ProbeCommand.self, Demo.self,
        ],
        defaultSubcommand: Run.self)
}
