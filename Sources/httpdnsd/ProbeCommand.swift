import ArgumentParser
import Base
import Configuration
import Daemon
import Transport

struct ProbeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "probe",
        abstract: "Go through the configured service and the local resolvers, and say what works and what does not.")

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        try ending {
            let loaded = try options.load()
            let probe = try loaded.naming { () throws(StartFailure) in
                try Probe(loaded.settings, environment: Environment.variables, say: StandardOutput.write)
            }
            guard waiting(for: { probe.run($0) }) else {
                throw Ending.unreachable("what is configured cannot be reached; see above")
            }
        }
    }
}
