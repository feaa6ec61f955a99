import ArgumentParser

@main
struct HTTPDNSD: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "httpdnsd",
        abstract: "Answers ordinary DNS through an encrypted HTTPDNS service.",
        version: version,
        subcommands: [Run.self, Check.self, Query.self, ProbeCommand.self, Demo.self],
        defaultSubcommand: Run.self)

    static let version = "0.1.0"
}
