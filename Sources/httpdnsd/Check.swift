import ArgumentParser
import Base
import Configuration
import Daemon
import Transport

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract:
            "Read the configuration as run would; say all that is wrong with it, or what differs from the defaults.",
        discussion: "Secrets are masked. It ends with 78 if anything is wrong.")

    @Argument(help: "The configuration file, as with -c.", completion: .file())
    var file: String?

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "All settings, not only those that differ from the defaults.")
    var all = false

    func validate() throws {
        if file != nil, options.file != nil { throw ValidationError("give the file once, with -c or without") }
    }

    func run() throws {
        try ending {
            var options = options
            options.file = file ?? options.file
            let contents = try options.contents(waits: true)
            let mistakes = Settings.mistakes(
                file: options.path, contents: contents, environment: Environment.variables)
            if let first = mistakes.first {
                // A single mistake is reported by the ending, unless a remark on another program's file takes its place.
                if mistakes.count > 1 { for mistake in mistakes { StandardError.write("\(mistake)") } }
                let all = "\(options.path): \(mistakes.count) mistakes; the daemon does not start with them"
                let remark = contents.flatMap { ForeignFile.remark(options.path, $0) }
                throw Ending.configuration(remark ?? (mistakes.count > 1 ? all : "\(first)"))
            }
            let loaded = try options.load(contents, waits: true)
            let found = try loaded.naming { () throws(StartFailure) in
                try Daemon.check(
                    loaded.settings, environment: Environment.variables,
                    areOfService: options.path == Settings.standardFile)
            }
            for warning in loaded.remarks + loaded.unreadable + found {
                StandardError.write(warning, isError: false)
            }
            let isThere = SystemFile.isThere(options.path)
            StandardOutput.write(
                "# \(options.path) is \(isThere ? "right" : "not there, and what is given without it is right")")
            if all {
                StandardOutput.write(loaded.settings.effectiveText)
            } else {
                let text = loaded.settings.differingText(loaded.origins)
                StandardOutput.say(text.isEmpty ? "# Every key has its default; --all shows them." : "\n" + text)
            }
        }
    }
}
