import Base
import Configuration
import Forwarding

@testable import Daemon

extension Settings {
    /// The settings in a text, without an environment.
    /// - Parameter readFile: Reads the files that the text names; there are none by default.
    static func load(
        _ contents: String, readFile: @escaping (String) -> FileReading = { _ in FileReading(nil) }
    ) throws -> Settings {
        try load(file: "/etc/test.toml", contents: contents, environment: [:], readFile: readFile).settings
    }

    /// The servers of each account as the settings give them, before any list of the service.
    func services(_ numbers: GroupNumbers) -> [GroupID: [Server]] {
        accounts.reduce(into: [:]) { services, account in services[numbers[account.name]] = account.services }
    }
}
