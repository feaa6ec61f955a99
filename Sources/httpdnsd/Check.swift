import ArgumentParser
import Base
import Configuration
import Daemon

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Read the configuration as run would and print the settings in effect, secrets masked.")

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        try ending {
            let loaded = try options.load()
            let found = try loaded.naming { () throws(StartFailure) in try Daemon.check(loaded.settings) }
            for warning in loaded.remarks + found {
                StandardError.write(warning, isError: false)
            }
            StandardOutput.write(loaded.settings.effectiveText)
        }
    }
}
