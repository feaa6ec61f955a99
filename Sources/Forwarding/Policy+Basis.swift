import Base
public import DNSCache
public import DNSWire

/// The basis of an answer: one number for everything that decides whether the answer is right, made from the rules in
/// force. The cache, its file and lookups under way compare the basis when the rules have changed; nothing else decides
/// which answers are outdated.
///
/// | in it | why |
/// | --- | --- |
/// | the groups to ask, in order, and the ends after which they are asked | another group may answer otherwise |
/// | the names of these groups, and whether they are accounts | numbers of groups are valid for one run of the daemon |
/// | `trust` of a group: `routeIp`, `trustAD`, `bogusAddresses`, `routeIpEncrypted`, `signed`, whether all its servers are encrypted | it answers for another network, or is trusted otherwise |
/// | the network, for a group whose servers the network gives | the same addresses are other servers in another network |
/// | the family of the type, as `addressType` has it | an account that is not asked for it does not decide about it |
/// | for answers that serve validators too: whether these are sent elsewhere | they would get an account's unsigned addresses |
/// | whether a group is asked for HTTPS and SVCB instead of an account, and which | its hints are replaced, or no group is asked |
/// | whether private addresses are removed | they are before an answer is cached |
/// | the network's NAT64 prefix, for AAAA | addresses are made under it |
/// | this prefix for AAAA, HTTPS and SVCB, if private addresses are removed | an address under it may be private |
/// | the group of the route that leaves the type out | no later group is asked |
/// | for HTTPS and SVCB, the groups of the route that leave A and AAAA out | the hints of the family are removed |
/// | the groups to ask for A, for AAAA under a prefix; for A and AAAA, for a service binding | the answer has their addresses |
/// | whether the hosts file has the name, for types of which the file has no answer | the name gets no NXDOMAIN |
///
/// The basis is 0 where the daemon answers by itself, whatever servers answer: reserved names, the hosts file, a group
/// with `answer`, names that the NAT64 prefix decides, private names without a server, a type that the group of the
/// name leaves out, ANY, a route without a group that can be asked, an alias.
///
/// | not in it | why |
/// | --- | --- |
/// | servers, accounts' keys, TLS, egress, time-outs, limits | the same group gives the same answer, by another way or later |
/// | in an account's answers: all but the names of the other groups, and the network of those before an account | the account has given them, however other groups are asked |
/// | the families that routes allow at the moment (`addressType = "auto"`) | the answer stays right in another network |
/// | TTLs, `rank` | they change the next answer that is cached |
extension Policy {
    /// Bases of answers to one group's names, by kind of question: see ``Policy/basis(_:_:_:)``. With 0, no answer is
    /// right.
    struct Bases {
        fileprivate var messages: UInt64 = 0
        fileprivate var signed: UInt64 = 0
        fileprivate var binding: UInt64 = 0
        /// The bases for A and AAAA: of accounts' answers, and of other groups' answers.
        fileprivate var ofAccounts: (ipv4: UInt64, ipv6: UInt64) = (0, 0)
        fileprivate var ofOthers: (ipv4: UInt64, ipv6: UInt64) = (0, 0)
    }

    /// The basis of an answer to this question.
    /// - Parameter audience: The audience of a cached answer, or of a client.
    public func basis(_ name: Name, _ type: RecordType, _ audience: Audience) -> Basis {
        basis(NameKey(name), type, audience)
    }

    func basis(_ key: NameKey, _ type: RecordType, _ audience: Audience) -> Basis {
        let client: Audience = audience.isOfAccounts ? .everyone : audience == .validators ? .validating : audience
        guard case .group(let row) = way(key, type, for: client).way else { return 0 }
        let areAddresses = row.kind == .addresses
        return basis(
            row, type, for: client, refusesPrivate: refusesPrivate(key.name),
            ofAccounts: audience.isOfAccounts && areAddresses,
            leavesValidators: audience == .everyone && areAddresses && groupRoutes[row.index].signedSteps != nil,
            isInHosts: row.kind == .messages && isInHosts(key, type))
    }

    /// The bases of the answers to a question under way, for its present clients.
    func bases(_ key: Flight.Key) -> AnswerBases {
        guard !key.findsServer, case .group(let row) = way(key.name, key.type, for: key.audience).way else {
            return AnswerBases()
        }
        return bases(key, by: row)
    }

    /// - Parameter row: The groups that the rules ask for the question.
    func bases(_ key: Flight.Key, by row: Row) -> AnswerBases {
        let (group, refuses) = (groupRoutes[row.index], refusesPrivate(key.name.name))
        var bases = AnswerBases()
        bases.ofMessages = basis(
            row, key.type, for: key.audience, refusesPrivate: refuses, ofAccounts: false,
            isInHosts: row.kind == .messages && isInHosts(key.name, key.type))
        if row.kind == .addresses, group.messageSteps.count < group.steps.count {
            bases.ipv4 = basis(row, .a, for: .everyone, refusesPrivate: refuses, ofAccounts: true)
            bases.ipv6 = basis(row, .aaaa, for: .everyone, refusesPrivate: refuses, ofAccounts: true)
        }
        return bases
    }

    /// - Parameters:
    ///   - ofAccounts: Whether the basis is for an account's answer.
    ///   - leavesValidators: Whether validating clients are sent to other groups.
    ///   - isInHosts: Whether the hosts file has the name.
    private func basis(
        _ row: Row, _ type: RecordType, for client: Audience, refusesPrivate: Bool, ofAccounts: Bool,
        leavesValidators: Bool = false, isInHosts: Bool = false
    ) -> Basis {
        let number = number(of: row, type, ofAccounts: ofAccounts)
        guard number != 0 else { return 0 }
        var hash = FNV()
        hash.add(number)
        hash.add(
            (refusesPrivate ? 1 : 0) + (leavesValidators ? 2 : 0) + markOfLeftOut(row, type, ofAccounts: ofAccounts)
                << 2)
        if type == .aaaa, synthesis(for: client) != nil {
            hash.add(prefixMark)
            add(row, .a, ofAccounts: ofAccounts, to: &hash)
        } else if refusesPrivate, synthesis != nil, type == .aaaa || type == .https || type == .svcb {
            hash.add(prefixMark)
        }
        if type == .https || type == .svcb {
            hash.add(markOfLeftOut(row, .a, ofAccounts: false))
            hash.add(markOfLeftOut(row, .aaaa, ofAccounts: false))
        }
        if row.kind == .binding {
            let addresses = Row(index: row.index, kind: .addresses)
            add(addresses, .a, ofAccounts: true, to: &hash)
            add(addresses, .aaaa, ofAccounts: true, to: &hash)
        }
        if isInHosts { hash.add(1) }
        return max(Basis(truncatingIfNeeded: hash.value ^ hash.value >> 32), 1)
    }

    /// Adds what decides about the records of another type whose addresses the answer may have.
    private func add(_ row: Row, _ type: RecordType, ofAccounts: Bool, to hash: inout FNV) {
        hash.add(number(of: row, type, ofAccounts: ofAccounts))
        hash.add(markOfLeftOut(row, type, ofAccounts: ofAccounts))
    }

    /// The number of the groups that a row asks for a type; 0 if no answer of theirs is right.
    private func number(of row: Row, _ type: RecordType, ofAccounts: Bool) -> UInt64 {
        let bases = groupRoutes[row.index].bases
        switch row.kind {
        case .messages: return bases.messages
        case .signed: return bases.signed
        case .binding: return bases.binding
        case .addresses:
            let both = ofAccounts ? bases.ofAccounts : bases.ofOthers
            return type == .a ? both.ipv4 : both.ipv6
        }
    }

    /// Makes the bases of all routes; to be called after each change of a route.
    mutating func setBases() {
        for index in groupRoutes.indices {
            let route = groupRoutes[index]
            func addresses(_ family: Families, ofAccounts: Bool) -> UInt64 {
                let steps = route.steps.filter { kinds.families(of: $0.group).contains(family) }
                let isLeftOut = route.steps.first.map { $0.group == GroupID(index) && steps.first != $0 } ?? true
                return isLeftOut ? 0 : number(of: steps, ofAccounts: ofAccounts)
            }
            var bases = Bases()
            bases.messages = number(of: route.messageSteps)
            bases.signed = number(of: route.signedSteps ?? [])
            bases.binding = number(of: route.steps, after: UInt64(1 + (route.bindingStep.map { $0 + 1 } ?? 0)))
            bases.ofAccounts = (addresses(.ipv4, ofAccounts: true), addresses(.ipv6, ofAccounts: true))
            bases.ofOthers = (addresses(.ipv4, ofAccounts: false), addresses(.ipv6, ofAccounts: false))
            groupRoutes[index].bases = bases
        }
    }

    /// Whether the settings of a group leave its answers as right as under other rules.
    func trusts(_ group: GroupID, as before: Policy) -> Bool { kinds.marks[group] == before.kinds.marks[group] }

    /// - Parameter ofAccounts: For accounts' answers, only the names of other groups count, and the network in which
    ///   groups before an account have led to it.
    private func number(of steps: [Step], ofAccounts: Bool = false, after first: UInt64 = 0) -> UInt64 {
        guard !steps.isEmpty else { return 0 }
        var hash = FNV()
        hash.add(first)
        let last = ofAccounts ? steps.lastIndex { kinds.marks[$0.group]?.isAccount ?? false } ?? 0 : steps.count
        for (index, step) in steps.enumerated() {
            if index > 0 { hash.add(UInt64(step.after.rawValue)) }
            guard let mark = kinds.marks[step.group] else { return 0 }
            hash.add(mark.name)
            if !ofAccounts || mark.isAccount { hash.add(mark.trust) }
            if mark.isOfNetwork, index < last { hash.add(network) }
        }
        return max(hash.value, 1)
    }
}
