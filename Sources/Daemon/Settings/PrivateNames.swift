import Base
import Configuration
import Forwarding
import Log
import Names

extension Report {
    /// The private names that go to servers outside this network, in words.
    static func privateNamesElsewhere(_ settings: Settings) -> [String] {
        func say(_ key: String, _ patterns: [DomainPattern], _ group: Settings.Group?) -> [String] {
            guard let outside = group?.serverElsewhere else { return [] }
            return patterns.filter { DomainRules.arePrivate($0) }.map {
                "\(key) has \($0 == .singleLabels ? "single labels" : "\($0)"), which only this network can know, asked of "
                    + "\(outside), which is not on it"
            }
        }
        let domains = settings.domains
        var words = say("domains.intercept", domains.intercept.map { .subtree($0) }, settings.httpdns)
        words += say("domains.bypass", domains.bypass.map { .subtree($0) }, settings.fallback.group)
        if let server = settings.privateNames.serverElsewhere {
            words.append(
                "private.servers: \(server) is not on this network, and is told the names that only this network can know"
            )
        }
        for group in settings.upstreams { words += say("\(group.section).domains", group.domains, group) }
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
        for case .server(let server) in servers
        where !server.endpoints.allSatisfy(\.address.isPrivate) || server.endpoints.isEmpty {
            return "\(server)"
        }
        return nil
    }
}
