/// What groups are like, as far as routes of rare questions depend on it; in one place behind a reference, so that a policy is copied
/// cheaply.
final class GroupKinds: Sendable {
    /// The accounts whose names clients that validate ask elsewhere, and the groups that may be asked then.
    let leavingValidators, signing: Set<GroupID>
    /// The accounts of whose names other groups are asked for HTTPS and SVCB, and the groups that may be.
    let bindingAccounts, encrypted: Set<GroupID>

    init(_ groups: [UpstreamGroup]) {
        leavingValidators = Set(groups.filter { $0.carriesAddresses && $0.leavesValidators }.map(\.id))
        signing = Set(groups.filter(\.maySign).map(\.id))
        bindingAccounts = Set(groups.filter { $0.carriesAddresses && $0.looksForBindings }.map(\.id))
        encrypted = Set(groups.filter(\.isEncrypted).map(\.id))
    }

    /// The same with other servers of a group.
    init(_ others: GroupKinds, with group: UpstreamGroup) {
        (leavingValidators, bindingAccounts) = (others.leavingValidators, others.bindingAccounts)
        signing = others.signing.subtracting([group.id]).union(group.maySign ? [group.id] : [])
        encrypted = others.encrypted.subtracting([group.id]).union(group.isEncrypted ? [group.id] : [])
    }
}
