import Base
import Configuration
import Forwarding
import Upstreams

extension NameLists {
    /// Refuses settings by which a server could be found only with its own help: see ``ServerCircle``.
    func refuseCircles(_ settings: Settings, _ numbers: GroupNumbers) throws(StartFailure) {
        guard settings.isLookupNeeded else { return }
        let groups = UpstreamGroups(settings, numbers, services: [:]) { _ in [] }
        var policy = Policy(settings, numbers, groups, self, hosts: HostsTable())
        guard let circle = policy.setServerNames(settings, numbers).first,
            let group = settings.messageGroups.first(where: { numbers[$0.name] == circle.owner }),
            let taker = settings.upstreams.first(where: { numbers[$0.name] == circle.taker }),
            let server = group.named.first(where: { $0.name == circle.name })
        else { return }
        let why =
            if let answer = taker.answer {
                "is answered \"\(answer)\" by [\(taker.section)]"
            } else if taker.name == group.name {
                "is a name that this group takes itself"
            } else {
                "is asked of [\(taker.section)], whose servers cannot be found without this group"
            }
        throw .setting(
            key: "\(group.section).servers", item: group.servers.firstIndex(of: .server(server)).map { $0 + 1 },
            "\(server) cannot be found: \(circle.name) \(why); give the server's addresses behind #, or take its name out "
                + "with except")
    }

    /// Refuses aliases that lead back to their own group, so that none of their names could be answered.
    func refuseAliasCircles(_ settings: Settings, _ numbers: GroupNumbers) throws(StartFailure) {
        for group in settings.upstreams {
            guard var target = group.alias else { continue }
            var passed: [Settings.Group] = [group]
            while let taker = rules.group(of: target),
                let next = settings.upstreams.first(where: { numbers[$0.name] == taker }), let beyond = next.alias
            {
                guard next.name != group.name else {
                    let circle =
                        passed.count == 1 ? "a name that this group takes itself" : "an alias of this group's names"
                    throw .setting(
                        key: "\(group.section).alias",
                        "\(target) is \(circle), so the alias leads in a circle; take that name out of "
                            + "[\(group.section)] with except")
                }
                // A circle of other groups is reported for those groups.
                if passed.contains(where: { $0.name == next.name }) { break }
                passed.append(next)
                target = beyond
            }
        }
    }
}
