import Base
import DNSWire

/// The traits of groups that the routes of rare questions depend on; behind one reference, so that the copy of a policy
/// is cheap.
final class GroupKinds: Sendable {
    /// The accounts whose names validating clients ask at other groups, and the groups that may be asked then.
    let leavingValidators, signing: Set<GroupID>
    /// The accounts for whose names other groups are asked for HTTPS and SVCB, and the groups that may be asked.
    let bindingAccounts, encrypted: Set<GroupID>
    /// The types that groups are not asked for; a group without such a type is absent.
    let without: [GroupID: Set<RecordType>]
    /// The settings of each group that decide about answers.
    let marks: [GroupID: Mark]

    struct Mark: Equatable {
        let name, trust: UInt64
        let isAccount, isOfNetwork: Bool
        let families: Families
    }

    init(_ groups: [UpstreamGroup]) {
        leavingValidators = Set(groups.filter { $0.carriesAddresses && $0.leavesValidators }.map(\.id))
        signing = Set(groups.filter(\.maySign).map(\.id))
        bindingAccounts = Set(groups.filter { $0.carriesAddresses && $0.looksForBindings }.map(\.id))
        encrypted = Set(groups.filter(\.isEncrypted).map(\.id))
        without = Dictionary(groups.map { ($0.id, $0.without) }) { first, _ in first }.filter { !$0.value.isEmpty }
        marks = Dictionary(groups.map { ($0.id, Mark($0)) }) { first, _ in first }
    }

    /// A copy with other servers of a group.
    init(_ others: GroupKinds, with group: UpstreamGroup) {
        (leavingValidators, bindingAccounts, marks) = (others.leavingValidators, others.bindingAccounts, others.marks)
        without = others.without
        signing = others.signing.subtracting([group.id]).union(group.maySign ? [group.id] : [])
        encrypted = others.encrypted.subtracting([group.id]).union(group.isEncrypted ? [group.id] : [])
    }

    /// The families that a group is asked for by the settings, whatever the present routes.
    func families(of group: GroupID) -> Families { marks[group]?.families ?? .both }
}

extension GroupKinds.Mark {
    fileprivate init(_ group: UpstreamGroup) {
        var (name, trust) = (FNV(), FNV())
        name.add("\(group.name.isEmpty ? "\(group.id.rawValue)" : group.name) \(group.carriesAddresses)")
        trust.add("\(group.trust) \(group.leavesValidators) \(group.isEncrypted)")
        self.init(
            name: name.value, trust: trust.value, isAccount: group.carriesAddresses, isOfNetwork: group.isOfNetwork,
            families: group.families)
    }
}
