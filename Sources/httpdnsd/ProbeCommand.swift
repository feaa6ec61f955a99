import ArgumentParser
import Base
import Daemon
import Transport

struct ProbeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "probe",
        abstract: "Go through the configured service and the fallback, and say what works and what does not.")

    @OptionGroup var options: ConfigurationOptions

    @Option(
        help: ArgumentHelp(
            "The group whose servers are tried; after httpdns those of thenTry and fallback are, too.",
            valueName: "name"))
    var group = "httpdns"

    @OptionGroup var lookup: NameOption

    func run() throws {
        try ending {
            let loaded = try options.load()
            try loaded.checkGroup(group)
            let trouble: String? = try Progress.during("beginning") { progress in
                let probe = try loaded.naming { () throws(StartFailure) in
                    try Probe(
                        loaded.settings, group: group, name: lookup.name, environment: Environment.variables,
                        asking: { progress.say("asking \($0)") },
                        say: { line in progress.aside { StandardOutput.say(line) } })
                }
                if probe.asksAccount, let name = lookup.name { try Ending.checkAccountNames([name]) }
                return try loaded.naming { () throws(StartFailure) in try probe.run() }
            }
            if let trouble { throw Ending.unreachable(trouble) }
        }
    }
}
