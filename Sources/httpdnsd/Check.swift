import ArgumentParser
import Configuration
import Daemon

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read the configuration as run would and print the settings in effect, secrets masked.")

    @OptionGroup var options: ConfigurationOptions

    @Flag(name: .shortAndLong, help: "Print only what is wrong or worth a warning.")
    var quiet = false

    func run() throws {
        try ending {
            let loaded = try options.load()
            for warning in try loaded.naming({ () throws(StartFailure) in try Daemon.check(loaded.settings) }) {
                StandardError.write(warning, isError: false)
            }
            if !quiet { StandardOutput.write(loaded.settings.effectiveText) }
        }
    }
}
