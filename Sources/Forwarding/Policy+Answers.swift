import Base
import DNSCache
import DNSWire
import Names

/// The answers that the daemon itself makes.
extension Policy {
    /// The answer for a type that an HTTPDNS account cannot be asked, if no other group may be.
    func notSupported(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL, extendedError: .notSupported)
    }

    /// The answer for a private name while the network has not named its resolvers yet. NXDOMAIN would be final to
    /// programs, and stub resolvers would cache it.
    func privateNamesAwaited(_ name: Name, _ type: RecordType) -> Answer {
        var answer = Answer.failure(name, type: type, .servFail)
        answer.add(.notReady, text: "no resolver of this network is known yet")
        return answer
    }

    /// The answer if all addresses were private and the name may not have private addresses, by the operator's setting.
    /// - Parameter ttl: The TTL of the addresses, if they are an account's.
    func noPermittedAddress(_ name: Name, _ type: RecordType, for ttl: UInt32 = 0) -> Answer {
        .noData(name, type: type, negativeTTL: max(negativeTTL, ttl), extendedError: .blocked)
    }

    /// The answer that there is no such record, where no group is asked: a group leaves the type or the family out; an
    /// account has no record; or it is an HTTPS or SVCB record of a name that goes to HTTPDNS, since the address hints
    /// of a resolver's record would bypass HTTPDNS.
    func noData(_ name: Name, _ type: RecordType) -> Answer { .noData(name, type: type, negativeTTL: negativeTTL) }

    /// The targets of the aliases in a scope; nothing for all names, which have the targets among them. For the names under
    /// a name, those of the groups that may take one of them; a reverse name under the NAT64 prefix does not count there.
    func targets(of scope: NameScope) -> [Name] {
        switch scope {
        case .all: []
        case .only(let name):
            [RecordType.a, .ptr].compactMap { type in
                if case .alias(of: let target, by: _) = route(NameKey(name), type).route { target } else { nil }
            }
        case .under(let parent):
            groupRoutes.indices.compactMap { index in
                guard let target = groupRoutes[index].answer?.0.target else { return nil }
                return rules.hasPattern(of: GroupID(index), under: parent) ? target : nil
            }
        }
    }

    /// The own answer of the group that takes a name; nil if the group asks its servers, or a rule before all groups
    /// has an answer.
    func answerOfGroup(
        _ key: NameKey, _ type: RecordType, _ finding: DomainRules.Finding, isOfThisHost: Bool
    ) -> (way: Way, reason: RouteReason)? {
        guard let group = finding.group, let (answer, groupName) = groupRoutes[group.rawValue].answer,
            hosts.answer(key, type, isOfThisHost: isOfThisHost) == nil,
            type != .any || GroupAnswer.withoutAddresses.contains(answer)
        else { return nil }
        let name = key.name
        var reply: Answer
        switch answer {
        case .alias(let target) where Self.isAnsweredByAccounts(type):
            return (.alias(of: target, by: group), .groupAnswers)
        case .alias(let target) where type == .cname:
            reply = .pointers(name, type: type, [target], ttl: Self.groupTTL)
        case .addresses(let addresses)
        where (type == .a || type == .aaaa) && addresses.contains(where: { $0.isIPv4 == (type == .a) }):
            reply = .addresses(name, type: type, addresses, ttl: Self.groupTTL)
        case .alias, .addresses: reply = .noData(name, type: type, negativeTTL: Self.groupTTL)
        case .nxdomain where !hosts.exists(key, isOfThisHost: isOfThisHost):
            reply = .nxDomain(name, type: type, negativeTTL: negativeTTL)
        case .nxdomain, .nodata: reply = .noData(name, type: type, negativeTTL: negativeTTL)
        case .refused: reply = .failure(name, type: type, .refused)
        }
        if GroupAnswer.withoutAddresses.contains(answer) { reply.add(.blocked, text: groupName) }
        return (.answer(reply, by: group), .groupAnswers)
    }

    /// Whether the hosts file has the name of a question that servers are asked. For A, AAAA, HTTPS and SVCB of such a
    /// name, servers are asked only for clients of other hosts, which may get less of the file.
    func isInHosts(_ key: NameKey, _ type: RecordType) -> Bool {
        hosts.exists(key, isOfThisHost: !Self.isAnsweredByAccounts(type))
    }

    /// TTL of the addresses in groups' own answers, and of names that the prefix of a translator decides, in seconds.
    private static var groupTTL: UInt32 { 300 }

    func localhost(_ name: Name, _ type: RecordType) -> Answer {
        switch type {
        case .a: .addresses(name, type: .a, [.v4(127, 0, 0, 1)], ttl: Self.fixedTTL)
        case .aaaa: .addresses(name, type: .aaaa, [IPAddress(v6: 0, 1)], ttl: Self.fixedTTL)
        default: .noData(name, type: type, negativeTTL: Self.fixedTTL)
        }
    }
}

/// `without` of a group: the types that it is not asked for; its names have no such records.
///
/// | the group that leaves a type out | clients get |
/// | --- | --- |
/// | takes the name, or is the first on the route | NODATA at once; no group is asked |
/// | comes later in the route | NODATA when the groups before it have ended so that it would be asked |
/// | the same, and the group before it, an account, is slow | the account's answer: no group is asked beside it |
///
/// NODATA is the group's answer, so no later group is asked, whatever `thenTryOn` is, and no AAAA record is made from A
/// records.
extension Policy {
    /// Whether a group is not asked for a type.
    func leavesOut(_ group: GroupID, _ type: RecordType) -> Bool {
        kinds.without[group]?.contains(type) ?? false
    }

    /// The steps for a type: they end with the first group that leaves the type out.
    func limited(_ steps: [Step], to type: RecordType) -> [Step] {
        guard let end = steps.firstIndex(where: { leavesOut($0.group, type) }) else { return steps }
        var limited = Array(steps[...end])
        (limited[end].hedgeAfter, limited[end].leavesOut) = (nil, true)
        return limited
    }

    /// The mark of the step whose group leaves the type out, for a basis; 0 if there is none.
    /// - Parameter ofAccounts: Whether the basis is for an account's answer, about which only accounts decide.
    func markOfLeftOut(_ row: Row, _ type: RecordType, ofAccounts: Bool) -> UInt64 {
        let route = groupRoutes[row.index]
        let steps = row.kind == .messages ? route.messageSteps : route.steps
        let end = steps.firstIndex {
            leavesOut($0.group, type) && (!ofAccounts || kinds.marks[$0.group]?.isAccount ?? false)
        }
        return end.map { UInt64($0) + 1 } ?? 0
    }
}

/// `signed` of accounts: validating clients (DO without CD) would find an account's addresses bogus in signed zones, so
/// their questions go to the groups of the route that have signatures and whose queries cannot be read on the way.
extension Policy {
    /// The account whose name a validating client asks at another group; nil if the question takes the common route.
    func leavesToValidators(_ key: Flight.Key) -> GroupID? {
        guard hasSignedSteps, key.audience.validates else { return nil }
        return leavesToValidators(key.name.name, key.type)
    }

    /// The clients that an answer for an audience serves: validating clients have answers of their own for a name whose
    /// other answers come from an account.
    func served(_ audience: Audience, _ name: Name, _ type: RecordType) -> Audience {
        // Other clients get AAAA records made from A records.
        if type == .aaaa, audience.validates, synthesis != nil { return .validators }
        guard hasSignedSteps, audience == .everyone || audience.validates, leavesToValidators(name, type) != nil else {
            return audience
        }
        return audience.validates ? .validators : .exceptValidators
    }

    private func leavesToValidators(_ name: Name, _ type: RecordType) -> GroupID? {
        let finding = find(name, type)
        guard Self.isAnsweredByAccounts(type), Self.canBeAddressed(name) else { return nil }
        let way = groupRoutes[index(finding)]
        return way.signedSteps == nil ? nil : way.steps.first?.group
    }

    /// The types for which an account's answer, or the lack of one, counts.
    static func isAnsweredByAccounts(_ type: RecordType) -> Bool {
        type == .a || type == .aaaa || type == .https || type == .svcb
    }
}

/// The effect of a network's NAT64 prefix on questions.
extension Policy {
    /// The prefix of the answers that are made for a client; nil if none are made.
    func synthesis(for audience: Audience) -> NAT64Prefix? {
        audience == .those(dnssecOK: true, checkingDisabled: true) ? nil : synthesis
    }

    /// The source of the answers that the prefix decides; nil for other questions. Programs find the prefix by
    /// `ipv4only.arpa` (RFC 8880 §7.2), whose DS is asked of servers while there are any: only they can prove that there
    /// is none. The reverse name of an address under the prefix is an alias (RFC 6147 §5.3.1): a server's NXDOMAIN for
    /// another type of it would hold for PTR, too (RFC 8020).
    func translated(_ name: Name, _ type: RecordType, by prefix: NAT64Prefix) -> Way? {
        if name == .ipv4Only, type != .ds || hasNoPrivateNames {
            guard type == .a || type == .aaaa else {
                return .answer(.noData(name, type: type, negativeTTL: Self.groupTTL))
            }
            let addresses = NAT64Prefix.ipv4Only + NAT64Prefix.ipv4Only.compactMap(prefix.addressOfIPv4Only)
            return .answer(.addresses(name, type: type, addresses, ttl: Self.groupTTL))
        }
        // The reverse name of an IPv6 address has 32 labels of a digit, `ip6`, `arpa` and the root.
        guard name.wire.count == 74, let network = ReverseNetwork(name: name, bits: 0, value: 0).network,
            let inside = prefix.ipv4(in: network.address), prefix.address(of: inside) != nil
        else { return nil }
        let target = Name.reverse(of: inside)
        switch type {
        case .ptr: return .alias(of: target, by: nil)
        case .cname: return .answer(.pointers(name, type: type, [target], ttl: Self.groupTTL))
        default: return .answer(.noData(name, type: type, negativeTTL: Self.groupTTL))
        }
    }

    func isTranslated(_ address: IPAddress) -> Bool { synthesis?.ipv4(in: address) != nil }

    /// Whether an address is private, or the translation of a private address.
    func isPrivate(_ address: IPAddress) -> Bool {
        address.isPrivate || synthesis?.ipv4(in: address)?.isPrivate ?? false
    }
}
