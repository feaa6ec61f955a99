import ArgumentParser
import Configuration
import Daemon

struct HostCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "host",
        abstract: "Make the programs of this machine ask the daemon, or take that back.",
        discussion: """
            show says who keeps /etc/resolv.conf, whether programs ask the daemon, and what would be changed. enable looks a \
            name up at the daemon, makes the change, looks the name up as programs do, and puts everything back if it does not \
            resolve. disable puts everything back as it was before, also after an enable that was interrupted; a resolv.conf \
            that names other servers by now stays.
            """)

    enum Work: String, ExpressibleByArgument, CaseIterable {
        case show, enable, disable
    }

    @Argument(help: "show, enable or disable.")
    var work = Work.show

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Change nothing; say what would be done, step by step.")
    var dryRun = false

    @OptionGroup var lookup: NameOption

    func run() throws {
        try ending {
            var settings = Settings()
            do {
                let loaded = try options.load()
                settings = loaded.settings
                if work == .enable { try loaded.naming(Host(settings).checkAddress) }
            } catch let problem where work != .enable {
                // `disable` needs no settings, and `show` prints the rest for a user who searches for a fault.
                if work == .show { StandardError.write(Ending(problem)?.line ?? "\(problem)", isError: false) }
            }
            let host = Host(settings)
            switch (work, dryRun) {
            case (.show, _): StandardOutput.say(try host.show())
            case (.enable, true): StandardOutput.say(try host.enabling())
            case (.disable, true): StandardOutput.say(try host.disabling())
            case (.enable, false): try host.enable(lookup.name ?? settings.nameToLookUp) { StandardOutput.say($0) }
            case (.disable, false): try host.disable { StandardOutput.say($0) }
            }
        }
    }
}
