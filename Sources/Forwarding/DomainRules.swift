import Base
public import DNSWire
public import Names

/// Finds the group of a name: the longest pattern that matches decides, in any order of the patterns.
///
/// Reserved names come first. Of the reserved names, only private names may go to a group other than the group for
/// private names, by a pattern at least as long as the reserved pattern.
///
/// Hundreds of thousands of patterns take long to build, so another thread builds the rules, and they are then swapped
/// in.
public final class DomainRules: Sendable {
    /// The meaning of one list of patterns.
    public enum Owner: Sendable, Hashable {
        /// `domains` of a group: its names. For ``GroupID/httpdns`` the list is `intercept`, for ``GroupID/fallback``
        /// `bypass`.
        case group(GroupID)
        /// `except` of a group: names that the group does not take, although a shorter pattern of its `domains` or of
        /// its lists matches.
        case except(GroupID)
        /// Names of a list from elsewhere, for a group that answers by itself. If another group has the same pattern,
        /// that group takes the names; of several such lists, the first does.
        case listed(GroupID)
        /// Exceptions of a list from elsewhere: names that its group does not take, however long its patterns are.
        case released(GroupID)
        /// Names that no list from elsewhere gives to its group: the daemon needs them itself.
        case spared(GroupID)
    }

    enum Rule: Sendable {
        case owner(Owner)
        case reserved(ReservedName)
    }

    private let table: DomainTable<Rule>
    /// The number of lists that belong to groups; the reserved names follow them.
    private let listCount: Int
    let groups: Set<GroupID>
    private let hasReleased: Bool

    /// - Throws: If two groups have the same pattern, or one group has it in `domains` and in `except`. A group's
    ///   pattern wins over an equal pattern in `intercept` and `bypass`, a `bypass` pattern over one in `intercept`.
    public convenience init(_ lists: [(DomainList, Owner)]) throws(DomainRulesError) {
        let most = DomainTable<Rule>.maximumOctets - Self.reserved.reduce(0) { $0 + $1.0.octets.count }
        guard lists.reduce(0, { $0 + $1.0.octets.count }) <= most else { throw .tooManyOctets }
        self.init(unchecked: lists)
        if let (pattern, first, second) = table.conflict { throw .conflict(pattern, first, second) }
    }

    /// Rules without groups of the operator.
    public convenience init() { self.init(unchecked: []) }

    private init(unchecked lists: [(DomainList, Owner)]) {
        table = DomainTable(lists.map { ($0, .owner($1)) } + Self.reserved) { first, second in
            guard case .owner(let first) = first, case .owner(let second) = second else { return false }
            switch (first, second) {
            case (.group(let a), .group(let b)): return a != b && a.isConfiguredByUser && b.isConfiguredByUser
            case (.group(let a), .except(let b)), (.except(let a), .group(let b)): return a == b
            // The author of a list does not know the other lists. The `except` of a list's own group comes first, since
            // lists are last.
            case (.except, .except), (.listed, _), (_, .listed), (.released, _), (_, .released), (.spared, _),
                (_, .spared):
                return false
            }
        }
        listCount = lists.count
        let listed = Set(lists.compactMap { if case .listed(let group) = $1 { group } else { nil } })
        hasReleased = lists.contains { list in
            switch list.1 {
            case .released, .spared: true
            case .except(let group): listed.contains(group)
            case .group, .listed: false
            }
        }
        groups = Set(lists.map { $1.id })
    }

    /// The rule for one name.
    struct Finding {
        fileprivate var match: DomainTable<Rule>.Match?

        /// Why the name is reserved; nil if a pattern gives the name to a group, or no pattern matches.
        var reserved: ReservedName? { if case .reserved(let reason) = match?.value { reason } else { nil } }
        var group: GroupID? { match?.value.group }
        /// Whether a group has the name by a pattern narrower than every name or every single label.
        var isNamed: Bool { group != nil && match.map(\.namesSomething) ?? false }
    }

    /// The rule for a question. DS records belong to the parent zone, so the group of the name without its first label
    /// is asked (RFC 4035 §3.1.4.1); but a reserved or private name is not sent out for that reason. A validator's
    /// question about a top-level domain goes to the group that takes every name, if there is one.
    func find(_ name: Name, _ type: RecordType) -> Finding {
        let found = find(name)
        guard type.isAboutZone, name != .root else { return found }
        let parent = find(name, from: Int(name.wire[0]) + 1)
        if found.reserved == .singleLabel { return parent.group == nil ? found : parent }
        guard type == .ds, found.reserved == nil else { return found }
        // The parent of `10.in-addr.arpa` is public.
        guard parent.reserved == nil, Self.isPrivate(name) else { return parent }
        // The pattern for single labels takes the name and not what it is a part of.
        return found.isNamed ? found : parent.group == nil ? reserved(name) : parent
    }

    /// The rule for a name, whatever the groups.
    private func reserved(_ name: Name) -> Finding {
        var found = Finding()
        guard let first = table.candidate(name.wire.span, from: (0, -1)) else { return found }
        table.forEach(holding: name, from: first) { match in
            if found.match == nil, case .reserved = match.value { found.match = match }
        }
        return found
    }

    /// - Parameter start: The offset of a label of the name; earlier labels are ignored, and the rest is not a single
    ///   label.
    func find(_ name: Name, from start: Int = 0) -> Finding {
        guard let first = table.candidate(name.wire.span, from: (start, -1)) else { return Finding() }
        return find(name, from: first)
    }

    @inline(never)
    private func find(_ name: Name, from first: DomainTable<Rule>.Label) -> Finding {
        var longest: DomainTable<Rule>.Match?
        var reserved: (match: DomainTable<Rule>.Match, reason: ReservedName)?
        var (excepted, exceptedOfLists) = hasReleased ? released(name, from: first) : ([], [])
        table.forEach(holding: name, from: first) { match in
            switch match.value {
            case .owner(.except(let group)): excepted.append(group)
            case .owner(.released), .owner(.spared): break
            case .owner(.listed(let group)) where exceptedOfLists.contains(group): break
            case .owner(.group(let group)), .owner(.listed(let group)):
                guard !excepted.contains(group) else { return }
                if group.goes(before: longest?.value.group, match.specificity == longest?.specificity) {
                    longest = match
                }
            case .reserved(let reason): if reserved == nil { reserved = (match, reason) }
            }
        }
        guard let reserved else { return Finding(match: longest) }
        guard reserved.reason.isPrivate, let longest, longest.specificity >= reserved.match.specificity else {
            return Finding(match: reserved.match)
        }
        return Finding(match: longest)
    }

    /// The groups whose lists have an exception for a name, and the groups whose lists do not take it by the settings.
    private func released(
        _ name: Name, from first: DomainTable<Rule>.Label
    ) -> (byLists: [GroupID], bySettings: [GroupID]) {
        var (byLists, bySettings): ([GroupID], [GroupID]) = ([], [])
        table.forEach(holding: name, from: first) { match in
            switch match.value {
            case .owner(.released(let group)): byLists.append(group)
            case .owner(.except(let group)), .owner(.spared(let group)): bySettings.append(group)
            default: break
            }
        }
        return (byLists, bySettings)
    }

    /// The group that takes a name by a pattern; nil if no group does, or the name is reserved.
    public func group(of name: Name) -> GroupID? { find(name).group }

    /// The longest pattern by which a group excludes a name; or a list's pattern for a name that is spared.
    func exception(_ name: Name) -> PolicyDecision.Exception? {
        var longest: (GroupID, DomainTable<Rule>.Match)?
        var spared: [GroupID] = []
        guard let first = table.candidate(name.wire.span, from: (0, -1)) else { return nil }
        table.forEach(holding: name, from: first) { match in
            if case .owner(.spared(let group)) = match.value { spared.append(group) }
        }
        table.forEach(holding: name, from: first) { match in
            switch match.value {
            case .owner(.except(let group)), .owner(.released(let group)):
                if longest == nil { longest = (group, match) }
            case .owner(.listed(let group)) where spared.contains(group):
                if longest == nil { longest = (group, match) }
            default: break
            }
        }
        guard let (group, match) = longest, let pattern = table.pattern(match) else { return nil }
        return PolicyDecision.Exception(
            group: group, pattern: pattern, location: table.location(match.list, match.offset))
    }

    /// Whether a group may take names under a name, or the name. The call walks over the group's patterns.
    func hasPattern(of group: GroupID, under parent: Name) -> Bool {
        table.hasPattern(under: parent) { rule in
            switch rule {
            case .owner(.group(let owner)), .owner(.listed(let owner)): owner == group
            default: false
            }
        }
    }

    func pattern(_ finding: Finding) -> DomainPattern? { finding.match.flatMap { table.pattern($0) } }
    func location(_ finding: Finding) -> PatternLocation? {
        finding.match.flatMap { $0.list < listCount ? table.location($0.list, $0.offset) : nil }
    }

    var residentOctets: Int { table.residentOctets }
}

/// The location of a pattern in the lists.
public struct PatternLocation: Sendable, Hashable {
    /// The index of the list, from 0.
    public let list: Int
    /// The line in the list's file, or the pattern's number in a list without a file; from 1.
    public let line: Int
}

/// Why lists of patterns cannot be used together.
public enum DomainRulesError: Error, Sendable, Equatable {
    /// Two groups take a pattern, or one group takes and excludes it; with both locations, the earlier list's first.
    case conflict(DomainPattern, PatternLocation, PatternLocation)
    /// The lists exceed four gigabytes together.
    case tooManyOctets
}

extension DomainRules.Owner {
    fileprivate var id: GroupID {
        switch self {
        case .group(let id), .except(let id), .listed(let id), .released(let id), .spared(let id): id
        }
    }
}

extension DomainRules.Rule {
    fileprivate var group: GroupID? { if case .owner(let owner) = self { owner.id } else { nil } }
}

extension GroupID {
    /// Whether the operator has configured the group in a section of its own.
    fileprivate var isConfiguredByUser: Bool { self != .httpdns && self != .fallback }

    /// Whether the group takes a name before `other`, which was found earlier.
    /// - Parameter isSamePattern: Whether the same pattern gave both groups; then an operator's group wins, and
    ///   `bypass` wins over `intercept`.
    fileprivate func goes(before other: GroupID?, _ isSamePattern: Bool) -> Bool {
        guard let other else { return true }
        return isSamePattern && (isConfiguredByUser && !other.isConfiguredByUser || other == .httpdns)
    }
}

// MARK: Names with a meaning of their own

/// Why a name belongs to no group.
public enum ReservedName: Sendable, Equatable {
    /// 127.0.0.1 and ::1 (RFC 6761 §6.3).
    case localhost
    /// The name does not exist in the DNS.
    case nonexistent
    /// The name has no records here.
    case noData
    /// The name has a meaning only in this network.
    case privateName
    /// The name has only one label, and a meaning only in this network.
    case singleLabel

    /// Whether the group for private names is asked, or a group with a pattern for the name.
    var isPrivate: Bool { self == .privateName || self == .singleLabel }
}

extension DomainRules {
    /// RFC 6761 (localhost, invalid, test), 7686 (onion), 9476 (alt), 6762 (local), 8375 (home.arpa), 7050
    /// (ipv4only.arpa), 9462 (resolver.arpa), ICANN's resolution 2024.07.29.06 (internal), the name that many routers
    /// give to their network (lan), and the name by which Firefox asks whether it may replace the network's resolver:
    /// here Firefox must not.
    private static let reserved: [(DomainList, Rule)] = [
        (list("localhost"), .reserved(.localhost)),
        (list("invalid", "onion", "alt", "use-application-dns.net"), .reserved(.nonexistent)),
        (list("resolver.arpa"), .reserved(.noData)),
        (list("local", "lan", "home.arpa", "internal", "test", "ipv4only.arpa"), .reserved(.privateName)),
        (privateReverseNames, .reserved(.privateName)), (list(""), .reserved(.singleLabel)),
    ]

    /// Reverse names that have a meaning only in this network (RFC 6303 §4, RFC 1918, RFC 6598).
    private static let privateReverseNames = list(
        "0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.168.0.0/16", "192.0.2.0/24", "198.51.100.0/24",
        "203.0.113.0/24", "255.255.255.255/32", "172.16.0.0/12", "100.64.0.0/10", "::/128", "::1/128", "fc00::/7",
        "fe80::/10",
        "2001:db8::/32")

    /// Whether the daemon answers all names of a pattern itself and asks no server, whatever the groups.
    public static func areNeverAsked(_ pattern: DomainPattern) -> Bool {
        switch pattern {
        case .subtree(let name), .below(let name), .only(let name):
            withoutGroups.find(name).reserved.map { !$0.isPrivate } ?? false
        case .singleLabels, .network: false
        }
    }

    /// Whether all names of a pattern are private: see ``ReservedName/privateName``.
    public static func arePrivate(_ pattern: DomainPattern) -> Bool {
        switch pattern {
        case .subtree(let name), .below(let name), .only(let name): isPrivate(name)
        case .singleLabels: true
        case .network(let network): isPrivate(Name.reverse(of: network.address)) && network.prefixLength >= 8
        }
    }

    /// Whether a name has a meaning only in this network.
    public static func isPrivate(_ name: Name) -> Bool { withoutGroups.find(name).reserved?.isPrivate ?? false }

    private static let withoutGroups = DomainRules()

    private static func list(_ patterns: String...) -> DomainList {
        DomainList(patterns.compactMap { DomainPattern($0) })
    }
}

extension RecordType {
    /// Whether validators ask zones for records of this type.
    var isAboutZone: Bool { self == .ds || self == .dnskey || self == .ns || self == .soa }
}
