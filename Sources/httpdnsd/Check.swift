import ArgumentParser
import Configuration
import Daemon

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read the configuration as run would and print the settings in effect, secrets masked.")

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        try ending {
            let settings = try options.load()
            for warning in try options.naming({ () throws(StartFailure) in try Daemon.check(settings) }) {
                StandardError.write(warning)
            }
            StandardOutput.write(settings.effectiveText)
        }
    }
}
