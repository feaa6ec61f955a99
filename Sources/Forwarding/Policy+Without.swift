import DNSCache
import DNSWire

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
        leavesOutTypes && kinds.without[group]?.contains(type) ?? false
    }

    /// The answer of a group that is not asked for a type.
    func leftOut(_ name: Name, _ type: RecordType) -> Answer { .noData(name, type: type, negativeTTL: negativeTTL) }

    /// The steps of a question of a type: the last one is the first whose group leaves the type out.
    func limited(_ steps: [Step], to type: RecordType) -> [Step] {
        guard leavesOutTypes, let end = steps.firstIndex(where: { leavesOut($0.group, type) }) else { return steps }
        var limited = Array(steps[...end])
        limited[end].hedgeAfter = nil
        return limited
    }

    /// The mark of the step whose group leaves the type out, for a basis; 0: there is none.
    /// - Parameter ofAccounts: For accounts' answers, which other groups do not decide.
    func markOfLeftOut(_ row: Row, _ type: RecordType, ofAccounts: Bool) -> UInt64 {
        guard leavesOutTypes else { return 0 }
        let route = groupRoutes[row.index]
        let steps = row.kind == .messages ? route.messageSteps : route.steps
        let end = steps.firstIndex {
            leavesOut($0.group, type) && (!ofAccounts || kinds.marks[$0.group]?.isAccount ?? false)
        }
        return end.map { UInt64($0) + 1 } ?? 0
    }
}
