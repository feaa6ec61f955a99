import Base
import Configuration
import Forwarding

@testable import Daemon

extension Settings {
    /// The servers of each account as the settings give them, before any list of the service.
    func services(_ numbers: GroupNumbers) -> [GroupID: [Server]] {
        accounts.reduce(into: [:]) { services, account in services[numbers[account.name]] = account.services }
    }
}
