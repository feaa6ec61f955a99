public import Base
import DNSCache
public import DNSWire

/// The rules that choose a group of upstreams for each name.
public struct Policy: Sendable {
    /// The TTL of answers that the daemon makes itself, and of "no record", in seconds. `minTTL` does not raise it.
    public var negativeTTL: UInt32
    let rules: DomainRules
    /// By `GroupID.rawValue`.
    var groupRoutes: [GroupRoute] = []
    /// The group for names that match no rule.
    private var otherwise: GroupID
    /// The group for private names that match no pattern of another group.
    let privateNames: GroupID
    /// Whether ``privateNames``, and the groups that are asked when it fails, have no servers now; private names then
    /// do not exist, or are not known yet.
    private(set) var hasNoPrivateNames = false
    /// See ``UpstreamGroup/awaitsServers``.
    private var awaitsPrivateNames = false
    /// The names whose answers may hold private addresses; nil for all names.
    private var privateAllowed: NameSet?

    /// The set is a reference, so that the copy of the policy in each turn of the loop is cheap.
    private final class NameSet: Sendable {
        let table: DomainTable<Void>
        init(_ names: [Name]) { table = DomainTable(subtrees: [(names, ())]) }
    }
    /// `[fallback] hosts`; a changed file replaces it whole.
    public var hosts: HostsTable
    /// The families of accounts, by `GroupID.rawValue`.
    private var families: [Families] = []
    /// Whether a route excludes a family that a later account of the route is asked for. Else two routes are spared for
    /// each lookup: 1,700 instructions.
    private var excludesFamilies = false
    /// The names whose addresses are sorted by the speed of their replies; nil if there are none.
    public var ranked: RankedNames?
    /// The prefix of the AAAA records that are made from A records (RFC 6147); nil if none are made.
    public internal(set) var synthesis: NAT64Prefix? {
        didSet {
            var hash = FNV()
            if let synthesis { hash.add("\(synthesis)") }
            prefixMark = hash.value
        }
    }
    /// The mark of the prefix in a basis.
    private(set) var prefixMark: UInt64 = 0
    /// The encrypted ways to ask the daemon (RFC 9462); nil if clients learn of none.
    public var designation: Designation?
    /// The names that the daemon itself looks up.
    var servers = ServerNames()
    /// A number of the network in which servers were found; each network has its own.
    public internal(set) var network: UInt64 = 0 {
        didSet { setBases() }
    }
    /// TTL of the answers that never change (RFC 6761 names), in seconds.
    static let fixedTTL: UInt32 = 3600

    /// The steps for the names of one group.
    struct GroupRoute {
        var steps: [Step] = []
        /// The steps whose groups carry messages.
        var messageSteps: [Step] = []
        /// The group's own answer; nil if its steps are asked.
        var answer: (GroupAnswer, name: String)?
        /// The steps for A and for AAAA; nil: the group's `addressType` excludes the family, so the answer is NODATA.
        var ipv4Steps, ipv6Steps: [Step]?
        /// The index of the step that is asked for HTTPS and SVCB instead of the account; nil if there is none.
        var bindingStep: Int?
        /// The steps for clients that validate; nil if all clients have the same steps.
        var signedSteps: [Step]?
        var bases = Bases()

        /// Whether the group of the first step is an account.
        var beginsWithAddresses: Bool { steps.first != messageSteps.first }
    }
    /// Traits of the groups.
    var kinds: GroupKinds
    var hasSignedSteps = false

    /// - Parameters:
    ///   - groups: All groups.
    ///   - routes: For each group, the groups that are asked for its names in order: itself first, each once, at most
    ///     ``Flight/maximumSteps``. If empty or absent, no group is asked.
    ///   - rules: The group of each name.
    ///   - otherwise: The group for all other names.
    ///   - privateNames: The group for private names; without servers, and with none behind it, no private name exists.
    ///     If it is `fallback`, private names go to it with servers or without.
    ///   - privateAllowed: If not nil, private addresses are allowed only for these names and the names under them, for
    ///     names that RFCs leave to resolvers, and for names that a pattern other than ``DomainPattern/singleLabels``
    ///     and `.` gives to a group other than HTTPDNS.
    public init(
        groups: [UpstreamGroup], routes: [GroupID: [Step]], rules: DomainRules, otherwise: GroupID,
        privateNames: GroupID = .fallback, negativeTTL: UInt32, privateAllowed: [Name]? = nil,
        hosts: HostsTable = HostsTable(), network: UInt64 = 0
    ) {
        self.negativeTTL = negativeTTL
        (self.hosts, self.network) = (hosts, network)
        self.rules = rules
        (self.otherwise, self.privateNames) = (otherwise, privateNames)
        let carriers = Set(groups.filter(\.carriesAddresses).map(\.id))
        let last =
            rules.groups.union(routes.keys).union([otherwise, privateNames, .fallback]).map(\.rawValue).max() ?? 0
        groupRoutes = (0...last).map { number in
            let steps = routes[GroupID(number)] ?? []
            precondition(steps.count <= Flight.maximumSteps)
            return GroupRoute(steps: steps, messageSteps: steps.filter { !carriers.contains($0.group) })
        }
        kinds = GroupKinds(groups)
        self.privateAllowed = privateAllowed.map { NameSet($0) }
        setFamilies([:])
        for group in groups {
            setPrivateServers(group)
            guard let answer = group.answer, groupRoutes.indices.contains(group.id.rawValue) else { continue }
            groupRoutes[group.id.rawValue].answer = (answer, group.name)
        }
        setStepsByServers()
        setBases()
    }

    /// The families that an account is asked for: its `addressType` ("auto": by the routes of this machine) less its
    /// `without`.
    public func families(of group: GroupID) -> Families {
        families.indices.contains(group.rawValue) ? families[group.rawValue] : .both
    }

    /// Sets the families that accounts are asked for; an account that is absent is asked for both.
    public mutating func setFamilies(_ accounts: [GroupID: Families]) {
        families = groupRoutes.indices.map {
            let left = kinds.without[GroupID($0), default: []].compactMap { Families(of: $0) }
            return accounts[GroupID($0), default: .both].subtracting(Families(left))
        }
        func asked(_ index: Int, _ family: Families) -> [Step]? {
            let asked = groupRoutes[index].steps.filter { accounts[$0.group, default: .both].contains(family) }
            let own = groupRoutes[index].steps.first { $0.group == GroupID(index) }
            return own == nil || own == asked.first ? asked : nil
        }
        excludesFamilies = !kinds.without.isEmpty
        for index in groupRoutes.indices {
            (groupRoutes[index].ipv4Steps, groupRoutes[index].ipv6Steps) = (asked(index, .ipv4), asked(index, .ipv6))
            let route = groupRoutes[index]
            for step in route.steps where !route.messageSteps.contains(where: { $0.group == step.group }) {
                let families = families(of: step.group)
                excludesFamilies =
                    excludesFamilies || route.ipv4Steps == nil && families.contains(.ipv4)
                    || route.ipv6Steps == nil && families.contains(.ipv6)
            }
        }
    }

    /// Whether addresses may be cached as an account gave them: they may not if the name's own group, or a group before
    /// the account, excludes their family, since a later account gives both families in one lookup.
    func mayCache(_ type: RecordType, of name: Name, by account: GroupID) -> Bool {
        !excludesFamilies || route(name, type).asks([account])
    }

    /// The pattern that matches a question, and its group.
    public func rule(for name: Name, _ type: RecordType = .a) -> PolicyDecision {
        let finding = find(name, type)
        let taker: PolicyDecision.Taker =
            if let reason = finding.reserved { .reserved(reason) } else { .group(finding.group ?? otherwise) }
        let exception = rules.exception(name).flatMap { taker == .group($0.group) ? nil : $0 }
        return PolicyDecision(
            taker: taker, pattern: rules.pattern(finding), location: rules.location(finding), exception: exception)
    }

    /// Whether private addresses are removed from answers to questions for a name.
    func refusesPrivate(_ name: Name) -> Bool {
        guard let privateAllowed, privateAllowed.table.longest(name) == nil else { return false }
        let finding = rules.find(name)
        if finding.reserved == .privateName { return false }
        return !finding.isNamed || finding.group == .httpdns
    }

    /// The route of a question of a client on this machine that sets neither DO nor CD.
    public func route(_ name: Name, _ type: RecordType) -> Route {
        route(NameKey(name), type, isOfThisHost: true).route
    }

    /// The reason for the question's route; for an alias, the reason for its target's.
    public func reason(_ name: Name, _ type: RecordType) -> RouteReason {
        let (route, reason, _) = route(NameKey(name), type, isOfThisHost: true)
        if case .alias(of: let target, by: _) = route { return self.reason(target, type) }
        return reason
    }

    /// - Parameters:
    ///   - audience: The client's audience.
    ///   - isOfThisHost: Whether the client runs on this machine. False for a question that servers are asked: for a name
    ///     that the hosts file has for this machine alone, a client of another host has asked it.
    func route(
        _ key: NameKey, _ type: RecordType, for audience: Audience = .everyone, isOfThisHost: Bool = false
    ) -> (route: Route, reason: RouteReason, row: Row?) {
        let (way, reason) = way(key, type, for: audience, isOfThisHost: isOfThisHost)
        let row: Row
        switch way {
        case .answer(let answer, let group): return (.answer(answer, by: group), reason, nil)
        case .alias(let target, let group): return (.alias(of: target, by: group), reason, nil)
        case .group(let taker): row = taker
        }
        let steps: [Step]
        switch row.kind {
        case .messages: steps = groupRoutes[row.index].messageSteps
        case .signed: steps = groupRoutes[row.index].signedSteps ?? []
        case .binding:
            let route = groupRoutes[row.index]
            let asked = route.bindingStep.flatMap { leavesOut(route.steps[$0].group, type) ? nil : $0 }
            return (.serviceBinding(route.steps, asked: asked), reason, row)
        case .addresses:
            guard let asked = type == .a ? groupRoutes[row.index].ipv4Steps : groupRoutes[row.index].ipv6Steps else {
                return (.answer(noData(key.name, type)), .familyLeftOut, nil)
            }
            steps = asked
        }
        if let first = steps.first, leavesOut(first.group, type) {
            return (.answer(noData(key.name, type)), .typeLeftOut, nil)
        }
        return steps.isEmpty
            ? (.answer(notSupported(key.name, type)), reason, nil) : (.ask(limited(steps, to: type)), reason, row)
    }

    /// The source of an answer.
    enum Way {
        /// The daemon, or a group that answers by itself.
        case answer(Answer, by: GroupID? = nil)
        /// See ``Route/alias(of:by:)``.
        case alias(of: Name, by: GroupID?)
        /// The groups to ask.
        case group(Row)
    }

    /// The steps of one kind for the names of a group.
    struct Row {
        let index: Int
        let kind: Kind

        enum Kind { case messages, signed, binding, addresses }
    }

    /// - Parameters: see ``route(_:_:for:isOfThisHost:)``.
    @inline(__always)
    func way(
        _ key: NameKey, _ type: RecordType, for audience: Audience, isOfThisHost: Bool = true
    ) -> (way: Way, reason: RouteReason) {
        let name = key.name
        let finding = find(name, type)
        if let designation, type != .any, designation.owners.contains(name) {
            return (.answer(designation.answer(name, type)), .designation)
        }
        switch finding.reserved {
        case .localhost where type != .any: return (.answer(localhost(name, type)), .localhost)
        case .nonexistent: return (.answer(.nxDomain(name, type: type, negativeTTL: Self.fixedTTL)), .nonexistent)
        case .noData: return (.answer(.noData(name, type: type, negativeTTL: Self.fixedTTL)), .noData)
        default: break
        }
        if let own = answerOfGroup(key, type, finding, isOfThisHost: isOfThisHost) { return own }
        if type == .any { return (.answer(.hinfo(name, ttl: Self.fixedTTL)), .any) }
        if let answer = hosts.answer(key, type, isOfThisHost: isOfThisHost) { return (.answer(answer), .hosts) }
        if let prefix = synthesis, let way = translated(name, type, by: prefix) { return (way, .translated) }
        if hasNoPrivateNames, finding.reserved != nil {
            if awaitsPrivateNames { return (.answer(privateNamesAwaited(name, type)), .privateNamesAwaited) }
            let exists = hosts.exists(key, isOfThisHost: isOfThisHost)
            return (
                .answer(exists ? noData(name, type) : .nxDomain(name, type: type, negativeTTL: negativeTTL)),
                .noPrivateNames
            )
        }
        let index = index(finding)
        if leavesOut(GroupID(index), type) { return (.answer(noData(name, type)), .typeLeftOut) }
        if finding.reserved == .privateName { return (.group(Row(index: index, kind: .messages)), .privateName) }
        guard Self.canBeAddressed(name) else {
            return (.group(Row(index: index, kind: .messages)), name.labelCount <= 1 ? .singleLabel : .notHostname)
        }
        if audience.validates, Self.isAnsweredByAccounts(type), groupRoutes[index].signedSteps != nil {
            return (.group(Row(index: index, kind: .signed)), .addresses)
        }
        switch type {
        case .a, .aaaa:
            return (.group(Row(index: index, kind: Self.isBypassed(finding) ? .messages : .addresses)), .addresses)
        case .https where groupRoutes[index].beginsWithAddresses, .svcb where groupRoutes[index].beginsWithAddresses:
            return (.group(Row(index: index, kind: .binding)), .serviceBinding)
        default: return (.group(Row(index: index, kind: .messages)), .type)
        }
    }

    /// Whether a group may be asked about a name, in a question of this type.
    func mayAsk(_ group: GroupID, _ name: Name, _ type: RecordType = .a) -> Bool {
        !leavesOut(group, type) && leads(name, type, to: group)
    }

    /// Whether the route of a question reaches a group. If the group leaves the type out, its answer is NODATA.
    public func leads(_ name: Name, _ type: RecordType, to group: GroupID) -> Bool {
        let finding = find(name, type)
        let way = groupRoutes[index(finding)]
        let isAddressed = Self.canBeAddressed(name) && !Self.isBypassed(finding)
        let steps = limited(isAddressed ? way.steps : way.messageSteps, to: type)
        return steps.contains { $0.group == group }
    }

    /// Whether a group is the first on the route of a name's addresses.
    func asksFirst(_ group: GroupID, _ name: Name) -> Bool {
        groupRoutes[index(rules.find(name))].steps.first?.group == group
    }

    /// The steps for the names of a group, in order.
    func steps(of group: GroupID) -> [Step] {
        groupRoutes.indices.contains(group.rawValue) ? groupRoutes[group.rawValue].steps : []
    }

    /// The steps for the names that no pattern takes, except `.`, in order.
    public var mainSteps: [Step] { groupRoutes[index(rules.find(.root))].steps }

    /// Whether any route leads to a group, or the group answers by itself.
    func leads(to group: GroupID) -> Bool {
        groupRoutes.indices.contains(group.rawValue) && groupRoutes[group.rawValue].answer != nil
            || groupRoutes.contains { $0.steps.contains { $0.group == group } }
    }

    /// Whether an account can be asked for a name. A single label has a meaning only in this network; other octets in a
    /// label could be a separator of the service's protocol and so ask for other names.
    static func canBeAddressed(_ name: Name) -> Bool {
        // The wire form of a single label: its length, the label, the root's length.
        name.wire.count > Int(name.wire[0]) + 2 && name.isHostname
    }

    /// Whether a pattern of `bypass` takes a name, so that no account is asked for it, not even one behind `fallback`.
    private static func isBypassed(_ finding: DomainRules.Finding) -> Bool { finding.group == .fallback }

    /// The rule for a question. Without private names, a validator's question about a single label is about a top-level
    /// domain.
    func find(_ name: Name, _ type: RecordType) -> DomainRules.Finding {
        var found = rules.find(name, type)
        // A group that answers by itself has no zone with the records of names that it leaves to others.
        if type.isAboutZone, let taker = found.group, groupRoutes[taker.rawValue].answer != nil {
            found = rules.find(name)
        }
        guard hasNoPrivateNames, found.reserved == .singleLabel, type.isAboutZone else { return found }
        return rules.find(.root)
    }

    /// The index in `groupRoutes` for a name.
    func index(_ finding: DomainRules.Finding) -> Int {
        (finding.group ?? (finding.reserved == nil ? otherwise : privateNames)).rawValue
    }

    /// Applies the changed servers of a group.
    mutating func setServers(of group: UpstreamGroup) {
        kinds = kinds.with(group)
        setPrivateServers(group)
        setStepsByServers()
        setBases()
    }

    /// Sets the steps that depend on how the servers of groups are asked.
    private mutating func setStepsByServers() {
        for index in groupRoutes.indices {
            guard let account = groupRoutes[index].steps.first?.group else { continue }
            let signing = groupRoutes[index].messageSteps.filter { kinds.signing.contains($0.group) }
            groupRoutes[index].signedSteps =
                kinds.leavingValidators.contains(account) && !signing.isEmpty ? signing : nil
            groupRoutes[index].bindingStep =
                kinds.bindingAccounts.contains(account)
                ? groupRoutes[index].steps.firstIndex { kinds.encrypted.contains($0.group) } : nil
        }
        hasSignedSteps = groupRoutes.contains { $0.signedSteps != nil }
    }

    private mutating func setPrivateServers(_ group: UpstreamGroup) {
        guard privateNames != .fallback, kinds.marks[privateNames] != nil else { return }
        if group.id == privateNames { awaitsPrivateNames = group.awaitsServers }
        hasNoPrivateNames = !groupRoutes[privateNames.rawValue].messageSteps.contains {
            $0.after.contains(.failure) && kinds.serving.contains($0.group)
        }
    }
}
