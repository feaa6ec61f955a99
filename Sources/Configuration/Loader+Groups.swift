import Names

extension Loader {
    /// Checks for errors between groups whose keys are each valid.
    func checkGroups(of settings: Settings) throws(ConfigurationError) {
        for group in settings.upstreams where group.servers.isEmpty && group.holder == .servers {
            let message = "missing; give whom this group asks, such as [\"192.168.1.1\"]"
            throw origins.error(group.section + ".servers", message)
        }
        for group in settings.upstreams + [settings.privateNames]
        where group.servers.contains(.resolvConf) && settings.fallback.resolvConf.isEmpty {
            throw origins.error(
                group.section + ".servers",
                "\"resolvConf\" finds nobody, as fallback.resolvConf is empty; name files there")
        }
        for group in settings.groups { try checkThenTry(group, settings) }
        try refuseSamePatterns(settings.upstreams)
        try refuseUnreachable(settings.groups)
    }

    private func checkThenTry(_ group: Settings.Group, _ settings: Settings) throws(ConfigurationError) {
        let names = settings.groups.map(\.name)
        for (index, name) in group.thenTry.enumerated() {
            func wrong(_ message: String) -> ConfigurationError {
                origins.error(group.section + ".thenTry", item: index + 1, message)
            }
            if name == group.name {
                throw wrong("\(quoted(name)) is this group itself, asked already; give other groups")
            }
            if settings.groups.contains(where: { $0.name == name && $0.answer != nil }) {
                throw wrong("\(quoted(name)) has an answer for its own names and asks no server; give other groups")
            }
            if names.contains(name) { continue }
            if name == Settings.Group.httpdnsName {
                throw wrong("\(quoted(name)) is not configured; give a section [\(name)] too, or other groups")
            }
            let others = settings.groups.filter { $0.name != group.name && $0.answer == nil }.map(\.name)
            throw wrong(
                "there is no group \(quoted(name)); give some of " + others.map { quoted($0) }.joined(separator: ", ")
                    + Nearest.question(Nearest.value(name, of: others).map { quoted($0) }))
        }
    }

    /// The longest pattern decides a name's group, so two groups must not have the same pattern.
    private func refuseSamePatterns(_ groups: [Settings.Group]) throws(ConfigurationError) {
        var owners: [DomainPattern: Settings.Group] = [:]
        for group in groups {
            let key = group.section + ".domains"
            for (index, pattern) in group.domains.enumerated() {
                let item = index + 1
                if let same = group.except.firstIndex(of: pattern) {
                    let except = origins.location(of: group.section + ".except", item: same + 1)
                    throw origins.error(
                        key, item: item,
                        "\(quoted(pattern.description)) stands in except as well (\(except)); give it in one of the two"
                    )
                }
                guard let owner = owners.updateValue(group, forKey: pattern) else { continue }
                let location = origins.location(
                    of: owner.section + ".domains", item: owner.domains.firstIndex(of: pattern).map { $0 + 1 })
                throw origins.error(
                    key, item: item,
                    "\(quoted(pattern.description)) is in [\(owner.section)] as well (\(location)); give it to one group"
                )
            }
        }
    }

    /// Refuses groups that no name can reach. A group in the `thenTry` of another group is asked only for names of that
    /// other group; its own `thenTry` does not apply then.
    private func refuseUnreachable(_ groups: [Settings.Group]) throws(ConfigurationError) {
        let tried = Set(groups.filter(\.takesNames).flatMap(\.thenTry))
        for group in groups where !group.takesNames && !tried.contains(group.name) {
            let key = group.section + ".domains"
            if group.answer != nil { throw origins.error(key, "missing; give the names that this group answers") }
            guard let other = groups.first(where: { $0.thenTry.contains(group.name) }) else {
                throw origins.error(
                    key, "missing, and no thenTry names this group; give the names it takes, or name it in a thenTry")
            }
            let location = origins.location(of: other.section + ".thenTry")
            throw origins.error(
                key,
                "nobody reaches this group: [\(other.section)] tries it (\(location)), but takes no names itself; give the "
                    + "names it takes, or name it in another thenTry")
        }
    }
}
