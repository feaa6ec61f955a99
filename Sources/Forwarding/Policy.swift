public import Base
import DNSCache
public import DNSWire

/// The rules by which a name goes to one group of upstreams or another.
public struct Policy: Sendable {
    /// The TTL of answers that the daemon makes itself, and of "no record", in seconds; not raised to `minTTL`.
    public var negativeTTL: UInt32
    let rules: DomainRules
    /// By `GroupID.rawValue`.
    var groupRoutes: [GroupRoute] = []
    /// The group for names without a rule.
    private var otherwise: GroupID
    /// The group for private names that no pattern gives to another.
    let privateNames: GroupID
    /// Whether it has no servers now: then private names do not exist, or are not known yet.
    private var hasNoPrivateNames = false
    /// See ``UpstreamGroup/awaitsServers``.
    private var awaitsPrivateNames = false
    /// The names whose answers may hold private addresses; nil: all.
    private var privateAllowed: NameSet?

    // References, so that a policy is copied cheaply: each turn of the loop does it.

    private final class Translator: Sendable {
        let prefix: NAT64Prefix
        let mark: UInt64

        init(prefix: NAT64Prefix) {
            self.prefix = prefix
            var hash = FNV()
            hash.add("\(prefix)")
            mark = hash.value
        }
    }
    private final class NameSet: Sendable {
        let table: DomainTable<Void>
        init(_ names: [Name]) { table = DomainTable(subtrees: [(names, ())]) }
    }
    /// `[fallback] hosts`, replaced whole when the file changes.
    public var hosts: HostsTable
    /// Of accounts, by `GroupID.rawValue`.
    private var families: [Families] = []
    /// Whether a route excludes a family for which an account further down it is asked.
    private var excludesFamilies = false
    /// The names whose addresses are given in the order in which they answer; nil: none.
    public var ranked: RankedNames?
    /// The prefix under which clients get addresses made of A records; nil: they get none.
    public internal(set) var synthesis: NAT64Prefix? {
        get { translator?.prefix }
        set { translator = newValue.map { Translator(prefix: $0) } }
    }
    /// Stands for the prefix in a basis.
    var prefixMark: UInt64 { translator?.mark ?? 0 }
    private var translator: Translator?
    /// The encrypted ways to ask the daemon; nil: clients are told of none.
    public var designation: Designation?
    /// The names that the daemon itself looks up.
    var servers = ServerNames()
    /// The network by which servers are found, as a number that no other network has.
    public internal(set) var network: UInt64 = 0 {
        didSet { setBases() }
    }
    /// Whether any group answers by itself.
    private(set) var hasAnswers = false
    /// TTL of the answers that never change (RFC 6761 names), in seconds.
    static let fixedTTL: UInt32 = 3600

    /// The steps for the names of one group.
    struct GroupRoute {
        var steps: [Step] = []
        /// Those of the steps whose groups carry messages.
        var messageSteps: [Step] = []
        var beginsWithAddresses = false
        /// What the group answers by itself; nil: its steps are asked.
        var answer: (GroupAnswer, name: String)?
        /// Those of the steps whose groups are asked for a family; nil: the group's `addressType` excludes the family, so the
        /// answer is NODATA.
        var ipv4Steps, ipv6Steps: [Step]?
        /// The index of the one that is asked for HTTPS and SVCB in the account's place; nil: there are none.
        var bindingStep: Int?
        /// Those for clients that validate; nil: they get what all get.
        var signedSteps: [Step]?
        var bases = Bases()
    }
    /// What groups are like.
    var kinds: GroupKinds
    /// Whether any group is not asked for some types.
    let leavesOutTypes: Bool
    var hasSignedSteps = false

    /// - Parameters:
    ///   - groups: All groups.
    ///   - routes: For each group, the groups that are asked for its names in order: itself first, each once, at most
    ///     ``Flight/maximumSteps``. Empty or absent: none is asked.
    ///   - rules: Which group each name belongs to.
    ///   - otherwise: The group for all other names.
    ///   - privateNames: The group for private names; while it has no servers, there are none of them. `fallback`: private
    ///     names are asked of it, whether it has servers or not.
    ///   - privateAllowed: If not nil, private addresses are allowed only for these names and those under them; also
    ///     for names that RFCs leave to resolvers, and for names that a pattern other than
    ///     ``DomainPattern/singleLabels`` and `.` gives to another group than HTTPDNS.
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
            return GroupRoute(
                steps: steps, messageSteps: steps.filter { !carriers.contains($0.group) },
                beginsWithAddresses: steps.first.map { carriers.contains($0.group) } ?? false)
        }
        kinds = GroupKinds(groups)
        leavesOutTypes = !kinds.without.isEmpty
        self.privateAllowed = privateAllowed.map { NameSet($0) }
        setFamilies([:])
        for group in groups {
            setPrivateServers(group)
            guard let answer = group.answer, groupRoutes.indices.contains(group.id.rawValue) else { continue }
            groupRoutes[group.id.rawValue].answer = (answer, group.name)
            hasAnswers = true
        }
        setSignedSteps()
        setBindingSteps()
        setBases()
    }

    /// The families that an account is asked for: its `addressType`, with "auto" by the routes, less its `without`.
    public func families(of group: GroupID) -> Families {
        families.indices.contains(group.rawValue) ? families[group.rawValue] : .both
    }

    /// Sets the families that accounts are asked for; those that are not named here are asked for both.
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
        excludesFamilies = leavesOutTypes
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

    /// Whether the addresses of a name may be cached as an account gave them: not those of a family that the name's own
    /// group excludes, or one before the account. An account further down the route gives both families in one lookup.
    func mayCache(_ type: RecordType, of name: Name, by account: GroupID) -> Bool {
        !excludesFamilies || route(name, type).asks([account])
    }

    /// The pattern that decides about a question, and its group.
    public func rule(for name: Name, _ type: RecordType = .a) -> PolicyDecision {
        let finding = find(name, type)
        let taker: PolicyDecision.Taker =
            if let reason = finding.reserved { .reserved(reason) } else { .group(finding.group ?? otherwise) }
        let exception = rules.exception(name).flatMap { exception in
            taker == .group(exception.group)
                ? nil
                : PolicyDecision.Exception(group: exception.group, pattern: exception.pattern, place: exception.place)
        }
        return PolicyDecision(
            taker: taker, pattern: rules.pattern(finding), place: rules.place(finding), exception: exception)
    }

    /// Whether private addresses are removed from answers to questions for a name.
    func refusesPrivate(_ name: Name) -> Bool {
        guard let privateAllowed, !privateAllowed.table.holds(name) else { return false }
        let finding = rules.find(name)
        if finding.reserved == .privateName { return false }
        return !finding.isNamed || finding.group == .httpdns
    }

    /// What becomes of the question of a client that sets neither DO nor CD.
    public func route(_ name: Name, _ type: RecordType) -> Route { route(NameKey(name), type).route }

    /// Why that question takes its route.
    public func reason(_ name: Name, _ type: RecordType) -> RouteReason { route(NameKey(name), type).reason }

    /// - Parameters:
    ///   - audience: that of the client.
    ///   - isOfThisHost: whether the client is a program of this machine.
    func route(
        _ key: NameKey, _ type: RecordType, for audience: Audience = .everyone, isOfThisHost: Bool = true
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
                return (.answer(.noData(key.name, type: type, negativeTTL: negativeTTL)), .familyLeftOut, nil)
            }
            steps = asked
        }
        if let first = steps.first, leavesOut(first.group, type) {
            return (.answer(leftOut(key.name, type)), .typeLeftOut, nil)
        }
        return steps.isEmpty
            ? (.answer(notSupported(key.name, type)), reason, nil) : (.ask(limited(steps, to: type)), reason, row)
    }

    /// Who decides about a question.
    enum Way {
        /// The daemon, or a group that answers by itself.
        case answer(Answer, by: GroupID? = nil)
        /// See ``Route/alias(of:by:)``.
        case alias(of: Name, by: GroupID?)
        /// The groups that are asked.
        case group(Row)
    }

    /// The steps of one kind for the names of a group, by its index in `groupRoutes`.
    struct Row {
        let index: Int
        let kind: Kind

        enum Kind { case messages, signed, binding, addresses }

        init(_ index: Int, _ kind: Kind) { (self.index, self.kind) = (index, kind) }
    }

    /// - Parameters: see ``route(_:_:for:isOfThisHost:)``.
    @inline(__always)
    func way(
        _ key: NameKey, _ type: RecordType, for audience: Audience, isOfThisHost: Bool = true
    ) -> (way: Way, reason: RouteReason) {
        let name = key.name
        let finding = find(name, type)
        if type == .ptr, let target = translatedReverse(name) { return (.alias(of: target, by: nil), .translated) }
        if let designation, type == .svcb, designation.owners.contains(name) {
            return (.answer(designation.answer(name)), .designation)
        }
        switch finding.reserved {
        case .localhost where type != .any: return (.answer(localhost(name, type)), .localhost)
        case .nonexistent: return (.answer(.nxDomain(name, type: type, negativeTTL: Self.fixedTTL)), .nonexistent)
        case .noData: return (.answer(.noData(name, type: type, negativeTTL: Self.fixedTTL)), .noData)
        default: break
        }
        if hasAnswers, let own = answerOfGroup(key, type, finding, isOfThisHost: isOfThisHost) { return own }
        if type == .any { return (.answer(.hinfo(name, ttl: Self.fixedTTL)), .any) }
        if let answer = hosts.answer(key, type, ttl: 0, isOfThisHost: isOfThisHost) { return (.answer(answer), .hosts) }
        if hasNoPrivateNames, finding.reserved != nil {
            return awaitsPrivateNames
                ? (.answer(privateNamesAwaited(name, type)), .privateNamesAwaited)
                : (.answer(noPrivateNames(name, type)), .noPrivateNames)
        }
        let index = index(finding)
        if leavesOut(GroupID(index), type) { return (.answer(leftOut(name, type)), .typeLeftOut) }
        if finding.reserved == .privateName { return (.group(Row(index, .messages)), .privateName) }
        guard Self.canBeAddressed(name) else {
            return (.group(Row(index, .messages)), name.labelCount <= 1 ? .singleLabel : .notHostname)
        }
        if hasSignedSteps, audience.validates, Self.isAnsweredByAccounts(type),
            groupRoutes[index].signedSteps != nil
        {
            return (.group(Row(index, .signed)), .addresses)
        }
        switch type {
        case .a, .aaaa: return (.group(Row(index, .addresses)), .addresses)
        case .https where groupRoutes[index].beginsWithAddresses, .svcb where groupRoutes[index].beginsWithAddresses:
            return (.group(Row(index, .binding)), .serviceBinding)
        default: return (.group(Row(index, .messages)), .type)
        }
    }

    /// Whether a group may be asked about a name, in a question of this type.
    func mayAsk(_ group: GroupID, _ name: Name, _ type: RecordType = .a) -> Bool {
        !leavesOut(group, type) && leads(name, type, to: group)
    }

    /// Whether the route of a question comes to a group. The group may leave the type out: its answer is NODATA then.
    func leads(_ name: Name, _ type: RecordType, to group: GroupID) -> Bool {
        let way = groupRoutes[index(find(name, type))]
        let steps = limited(Self.canBeAddressed(name) ? way.steps : way.messageSteps, to: type)
        return steps.contains { $0.group == group }
    }

    /// Whether a group is the first that is asked for the addresses of a name.
    func asksFirst(_ group: GroupID, _ name: Name) -> Bool {
        groupRoutes[index(rules.find(name))].steps.first?.group == group
    }

    /// The steps for the names of a group, in order.
    func steps(of group: GroupID) -> [Step] {
        groupRoutes.indices.contains(group.rawValue) ? groupRoutes[group.rawValue].steps : []
    }

    /// Whether any route leads to a group, or it answers by itself.
    func leads(to group: GroupID) -> Bool {
        groupRoutes.indices.contains(group.rawValue) && groupRoutes[group.rawValue].answer != nil
            || groupRoutes.contains { $0.steps.contains { $0.group == group } }
    }

    /// Whether a name can be sent to an HTTPDNS account. A single label means something on this network alone; a label
    /// with other octets could contain a separator of the service's protocol and ask for other names.
    static func canBeAddressed(_ name: Name) -> Bool {
        // A name of one label has these octets: the label's length, the label, and the root's length.
        name.wire.count > Int(name.wire[0]) + 2 && name.isHostname
    }

    /// What the rules say of a question. While there are no private names, what validators ask of a single label is about a
    /// top level.
    func find(_ name: Name, _ type: RecordType) -> DomainRules.Finding {
        let found = rules.find(name, type)
        guard hasNoPrivateNames, found.reserved == .singleLabel, type.isAboutZone else { return found }
        return rules.find(.root)
    }

    /// The index in `groupRoutes` for a name.
    func index(_ finding: DomainRules.Finding) -> Int {
        (finding.group ?? (finding.reserved == nil ? otherwise : privateNames)).rawValue
    }

    /// The servers of a group have changed.
    mutating func setServers(of group: UpstreamGroup) {
        setPrivateServers(group)
        kinds = GroupKinds(kinds, with: group)
        setSignedSteps()
        setBindingSteps()
        setBases()
    }

    private mutating func setBindingSteps() {
        for index in groupRoutes.indices {
            let isBound = groupRoutes[index].steps.first.map { kinds.bindingAccounts.contains($0.group) } ?? false
            groupRoutes[index].bindingStep =
                isBound ? groupRoutes[index].steps.firstIndex { kinds.encrypted.contains($0.group) } : nil
        }
    }

    private mutating func setPrivateServers(_ group: UpstreamGroup) {
        guard group.id == privateNames, group.id != .fallback else { return }
        (hasNoPrivateNames, awaitsPrivateNames) = (group.servers.isEmpty, group.awaitsServers)
    }
}
