import DNSCache
public import DNSWire

/// The groups that find a server whose host is a name.
///
/// The daemon asks the forwarder, as a client would, and the question goes by the rules of names, with three
/// differences:
///
/// - Instead of `[fallback]`, and after `[httpdns]`, the resolvers of `resolvConf` are asked: their addresses are
///   known.
/// - A group is left out if one of its servers has that name, or if it has a server that is found only by asking such a
///   group, directly or through other groups. So no lookup can wait for itself.
/// - The answer is given and not cached: it did not come by the route of clients' questions.
///
/// If no group is left, names of servers lead in a circle (``ServerCircle``), and the settings are refused.
struct ServerNames {
    /// The step at the resolvers of `resolvConf`; nil if no server has to be found.
    var resolvers: Step?
    /// The names in `reportUrl`.
    var reports: Set<Name> = []
    /// For each name of a server, the groups that are not asked for it.
    fileprivate(set) var leftOut: [Name: Set<GroupID>] = [:]
}

/// The name of a server that no group can resolve: only groups that need that server could be asked, or the group that
/// takes the name answers without an address.
public struct ServerCircle: Equatable {
    /// The server's name.
    public let name: Name
    /// The group whose server it is.
    public let owner: GroupID
    /// The group that takes the name. The group may answer by itself, without an address.
    public let taker: GroupID
}

extension Policy {
    /// Sets the names of the servers of each group.
    /// - Parameters:
    ///   - reports: Names that are looked up only for reports; no account whose failures are reported is asked for
    ///     these names.
    ///   - resolvers: The step at the resolvers of `resolvConf`; nil if there are no names of servers.
    /// - Returns: The circles, in the order of the groups.
    @discardableResult
    public mutating func setServerNames(
        _ names: [GroupID: [Name]], reports: [Name] = [], resolvers: Step?
    ) -> [ServerCircle] {
        var leftOut: [Name: Set<GroupID>] = [:]
        servers = ServerNames(resolvers: resolvers, reports: Set(reports))
        var needs = names.mapValues { Set($0.flatMap { stepsToServer($0).map(\.group) }) }
        // Each round extends every chain of groups by one group.
        for _ in names {
            needs = needs.mapValues { groups in groups.reduce(groups) { $0.union(needs[$1] ?? []) } }
        }
        for (group, names) in names {
            let others = needs.filter { $0.value.contains(group) }.keys
            for name in names { leftOut[name, default: []].formUnion([group] + others) }
        }
        servers.leftOut = leftOut
        return names.sorted { $0.key.rawValue < $1.key.rawValue }.flatMap { group, names in
            names.compactMap { name in
                if let taker = rules.find(name).group, let answer = groupRoutes[taker.rawValue].answer {
                    return answer.0.addresses.isEmpty ? ServerCircle(name: name, owner: group, taker: taker) : nil
                }
                let steps = stepsToServer(name)
                guard let first = steps.first, steps.allSatisfy({ leftOut[name]!.contains($0.group) }) else {
                    return nil
                }
                return ServerCircle(name: name, owner: group, taker: first.group)
            }
        }
    }

    /// The route of the daemon's own questions: for a server's address, and for the network's NAT64 prefix. For a name
    /// that no server has any more, no group is asked.
    func routeToServer(_ key: NameKey, _ type: RecordType) -> Route {
        if key.name == .ipv4Only, let resolvers = servers.resolvers { return .ask([resolvers]) }
        let (name, way) = (key.name, route(key, type, isOfThisHost: true))
        switch way.reason {
        case .localhost, .nonexistent, .noData, .hosts, .groupAnswers: return way.route
        default: break
        }
        let steps =
            if let leftOut = servers.leftOut[name] {
                stepsToServer(name).filter { !leftOut.contains($0.group) }
            } else {
                servers.reports.contains(name) ? groupRoutes[index(rules.find(name))].messageSteps : []
            }
        let asked = steps.filter {
            families(of: $0.group).isSuperset(of: Families(of: type) ?? .both) && !leavesOut($0.group, type)
        }
        if !asked.isEmpty { return .ask(asked) }
        var answer = Answer.failure(name, type: type, steps.isEmpty ? .servFail : .noError)
        let reason =
            steps.isEmpty ? "no group may be asked for it" : "addressType or without leaves this family out"
        answer.add(.notSupported, text: reason)
        return .answer(answer)
    }

    /// Whether a flight may ask a group. A question that goes past the account of its name, for a service binding or for
    /// a validating client, is asked only where it cannot be read on the way.
    func mayAsk(_ group: GroupID, _ flight: Flight) -> Bool {
        guard mayAsk(group, flight.key) else { return false }
        guard kinds.serving.contains(group) else { return true }
        if flight.isBinding { return kinds.encrypted.contains(group) }
        return !goesPastAccount(flight) || kinds.signing.contains(group)
    }

    private func goesPastAccount(_ flight: Flight) -> Bool {
        let key = flight.key
        func isAccount(_ step: Step) -> Bool { kinds.marks[step.group]?.isAccount ?? false }
        return key.audience.validates && Self.isAnsweredByAccounts(key.type) && !flight.route.contains(where: isAccount)
            && groupRoutes[index(find(key.name.name, key.type))].steps.first.map(isAccount) ?? false
    }

    /// Whether a group may be asked a question by some route.
    func mayAsk(_ group: GroupID, _ key: Flight.Key) -> Bool {
        key.findsServer ? routeToServer(key.name, key.type).asks([group]) : mayAsk(group, key.name.name, key.type)
    }

    /// The steps for the name of a server, before any group is left out.
    private func stepsToServer(_ name: Name) -> [Step] {
        guard let resolvers = servers.resolvers else { return [] }
        let finding = rules.find(name)
        let owner = finding.group ?? (finding.reserved == nil ? .httpdns : privateNames)
        let route = groupRoutes[owner.rawValue]
        let steps = Self.canBeAddressed(name) ? route.steps : route.messageSteps
        switch owner {
        case .httpdns: return steps.filter { $0.group == .httpdns } + [resolvers]
        case .fallback: return [resolvers]
        default:
            return steps.map { step in
                step.group == .fallback ? Step(resolvers.group, hedgeAfter: step.hedgeAfter, after: step.after) : step
            }
        }
    }
}

extension Forwarder {
    /// The source of an answer, for a reason in the log.
    public func words(of answerer: Answerer) -> String {
        switch answerer {
        case .server(let group, let server): "\(name(of: group)): \(server)"
        case .group(let group): name(of: group)
        default: "this daemon"
        }
    }
}
