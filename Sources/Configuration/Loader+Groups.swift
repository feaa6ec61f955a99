import DNSWire
import Names

extension Loader {
    /// Checks what can be wrong between groups although each key is valid by itself.
    func checkGroups(of settings: Settings) throws(ConfigurationError) {
        for group in settings.upstreams where group.servers.isEmpty && group.account == nil {
            let message = "missing; give whom this group asks, such as [\"192.168.1.1\"]"
            throw origins.error(group.path + ".servers", message)
        }
        for group in settings.upstreams
        where group.servers.contains(.resolvConf) && settings.fallback.resolvConf.isEmpty {
            throw origins.error(
                group.path + ".servers",
                "\"resolvConf\" finds nobody, as fallback.resolvConf is empty; name files there")
        }
        for group in settings.upstreams + [settings.fallback.group]
        where group.account == nil && group.thenTryOn.contains(.norecord) {
            let others = Settings.Group.Reason.allCases.filter { $0 != .norecord }.map { quoted($0.rawValue) }
            throw origins.error(
                group.path + ".thenTryOn",
                "\"norecord\" without an HTTPDNS account is not right; give one of " + others.joined(separator: ", "))
        }
        try refuseThenTryBesideHTTPOnly(draft.account, draft.account.rest.thenTry, Section.httpdns.rawValue)
        for group in draft.settings.upstreams {
            try refuseThenTryBesideHTTPOnly(group.given, group.thenTry, group.path)
        }
        let routes = routes(of: settings)
        for route in routes { try checkThenTry(route, settings) }
        try refuseSamePatterns(settings.upstreams)
        try refuseUnreachable(routes)
    }

    /// A group and the groups it tries next.
    private struct Route {
        let name: String
        /// The group's section, as in messages.
        let section: String
        let thenTry: [String]
        /// Whether names are routed to it directly, not only when another group has failed.
        let takesNames: Bool
    }

    private func routes(of settings: Settings) -> [Route] {
        let fallback = settings.fallback.group
        var routes = [
            Route(name: fallback.name, section: fallback.name, thenTry: fallback.thenTry, takesNames: true)
        ]
        if hasHTTPDNS {
            let name = Settings.Group.httpdnsName
            let thenTry = draft.account.httpOnly ? [] : draft.account.rest.thenTry
            routes.insert(Route(name: name, section: name, thenTry: thenTry, takesNames: true), at: 0)
        }
        return routes
            + settings.upstreams.map { group in
                let takesNames = !group.domains.isEmpty || !group.domainsFile.isEmpty
                return Route(name: group.name, section: group.path, thenTry: group.thenTry, takesNames: takesNames)
            }
    }

    private func refuseThenTryBesideHTTPOnly(
        _ account: Draft.Account, _ others: [String], _ section: String
    ) throws(ConfigurationError) {
        let thenTry = section + ".thenTry"
        guard account.httpOnly, origins.keys[thenTry] != nil, !others.isEmpty else { return }
        throw origins.error(
            section + ".httpOnly",
            "true is not right beside thenTry (\(origins.place(of: thenTry))), which names who else is asked; give one of "
                + "the two")
    }

    private func checkThenTry(_ route: Route, _ settings: Settings) throws(ConfigurationError) {
        let names =
            (hasHTTPDNS ? [Settings.Group.httpdnsName] : []) + [Settings.Group.fallbackName]
            + settings.upstreams.map(\.name)
        for (index, name) in route.thenTry.enumerated() {
            let (key, item) = (route.section + ".thenTry", index + 1)
            if name == route.name {
                throw origins.error(
                    key, item: item, "\(quoted(name)) is this group itself, asked already; give other groups")
            }
            if names.contains(name) { continue }
            if name == Settings.Group.httpdnsName {
                throw origins.error(
                    key, item: item, "\(quoted(name)) is not configured; give a section [\(name)] too, or other groups")
            }
            let others = names.filter { $0 != route.name }.map { quoted($0) }
            throw origins.error(
                key, item: item, "there is no group \(quoted(name)); give some of " + others.joined(separator: ", "))
        }
    }

    /// The longest pattern wins, so no two groups may have the same one.
    private func refuseSamePatterns(_ groups: [Settings.Group]) throws(ConfigurationError) {
        var owners: [DomainPattern: Settings.Group] = [:]
        for group in groups {
            let key = group.path + ".domains"
            for (index, pattern) in group.domains.enumerated() {
                let item = index + 1
                if let same = group.except.firstIndex(of: pattern) {
                    let except = origins.place(of: group.path + ".except", item: same + 1)
                    throw origins.error(
                        key, item: item,
                        "\(quoted(pattern.description)) stands in except as well (\(except)); give it in one of the two"
                    )
                }
                guard let owner = owners.updateValue(group, forKey: pattern) else { continue }
                let place = origins.place(
                    of: owner.path + ".domains", item: owner.domains.firstIndex(of: pattern).map { $0 + 1 })
                throw origins.error(
                    key, item: item,
                    "\(quoted(pattern.description)) is in [\(owner.path)] as well (\(place)); give it to one group"
                )
            }
        }
    }

    /// The groups in a group's `thenTry` are asked for the names of that group alone; their own `thenTry` does not
    /// apply then.
    private func refuseUnreachable(_ routes: [Route]) throws(ConfigurationError) {
        let tried = Set(routes.filter(\.takesNames).flatMap(\.thenTry))
        for route in routes where !route.takesNames && !tried.contains(route.name) {
            let key = route.section + ".domains"
            guard let other = routes.first(where: { $0.thenTry.contains(route.name) }) else {
                throw origins.error(
                    key, "missing, and no thenTry names this group; give the names it takes, or name it in a thenTry")
            }
            let place = origins.place(of: other.section + ".thenTry")
            throw origins.error(
                key,
                "nobody reaches this group: [\(other.section)] tries it (\(place)), but takes no names itself; give the "
                    + "names it takes, or name it in another thenTry")
        }
    }
}
