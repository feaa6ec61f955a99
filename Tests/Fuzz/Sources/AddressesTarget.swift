import Base

@testable import Upstreams

extension Target {
    /// The file with the addresses of servers.
    static let addresses = Target(name: "addresses") { text in
        let servers = ServerAddressText.parse(text)
        check(servers.count <= ServerAddresses.maximumNames, "\(servers.count) names")
        check(Set(servers.map(\.name)).count == servers.count, "a name twice")
        for (name, addresses) in servers {
            check(name.isHostname, "\(name) is no name of a host")
            check(1...ServerAddresses.maximumWorked ~= addresses.count, "\(addresses.count) addresses")
            check(Set(addresses).count == addresses.count, "an address twice")
            check(addresses.allSatisfy(\.isOfOneMachine), "an address of no machine")
        }
        let again = ServerAddressText.parse(ServerAddressText.write(servers))
        check(
            again.map(\.name) == servers.map(\.name) && again.map(\.addresses) == servers.map(\.addresses),
            "written down they are others")
    }
}
