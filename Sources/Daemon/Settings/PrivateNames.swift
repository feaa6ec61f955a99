import Base
import Configuration
import Forwarding
import Log
import Names

extension Report {
    /// The private names that go to servers outside this network, in words.
    static func privateNamesElsewhere(
        _ settings: Settings, _ names: NameLists, _ numbers: GroupNumbers
    ) -> [String] {
        var words = names.privateNames.compactMap { location, pattern, id -> String? in
            guard let taker = settings.groups.first(where: { numbers[$0.name] == id }) else { return nil }
            let mayAskAccounts = id != .fallback && pattern != .singleLabels
            let route = [taker] + taker.thenTry.compactMap { name in settings.groups.first { $0.name == name } }
            return route.lazy.filter { mayAskAccounts || $0.account == nil }.compactMap(\.serverElsewhere).first.map {
                "\(location) has \(pattern == .singleLabels ? "single labels" : "\(pattern)"), which only this network can know, "
                    + "asked of \($0), which is not on it"
            }
        }
        if let server = settings.privateNames.serverElsewhere {
            words.append(
                "private.servers: \(server) is not on this network, and is told the names that only this network can know"
            )
        }
        return words
    }

    /// The resolvers of the network that are asked for private names and have public addresses, in words.
    static func publicResolvers(_ settings: Settings, _ local: LocalReading) -> [String] {
        guard settings.privateNames.entries.contains(.resolvConf) else { return [] }
        return (local.found ?? []).filter { !$0.address.isPrivate }.map {
            "private.servers: \($0.address), which this network names as its resolver, has a public address, and is told the names "
                + "that only this network can know"
        }
    }

    /// A remark that the name in the daemon's certificate is a loopback address for clients of other hosts.
    static func loopbackName(_ settings: Settings, _ hosts: HostsTable) -> [String] {
        guard let name = settings.listen.name, let address = hosts.loopbackAddress(of: name) else { return [] }
        return [
            "listen.name: \(name) leads to \(address) by \(settings.fallback.hosts.joined(separator: " or ")), which is given to programs of this machine alone; "
                + "for other clients the name goes where other names go"
        ]
    }
}

extension Settings.Group {
    /// A server outside this network, in words; nil if there is none.
    fileprivate var serverElsewhere: String? {
        if account != nil { return "HTTPDNS" }
        for case .server(let server) in servers where !server.isOfThisNetwork { return "\(server)" }
        return nil
    }
}
