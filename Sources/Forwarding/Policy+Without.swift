import DNSCache
import DNSWire

/// `without` of a group: the types that it is not asked for, so that of its names there is no such record.
///
/// | the group that leaves a type out | what clients get |
/// | --- | --- |
/// | takes the name, or is the first that would be asked | NODATA at once; no group is asked |
/// | comes later in the route | NODATA once the groups before it have ended so that it would be asked |
/// | the same, and the group before it, an account, is slow | that is waited for: nothing is asked beside it |
///
/// NODATA is the group's answer, so no group behind it is asked, whatever `thenTryOn` says, and no AAAA record is made of A records.
extension Policy {
    /// Whether a group is not asked for a type.
    func leavesOut(_ group: GroupID, _ type: RecordType) -> Bool {
        leavesOutTypes && kinds.without[group]?.contains(type) ?? false
    }

    /// The answer of a group that is not asked for a type.
    func leftOut(_ name: Name, _ type: RecordType) -> Answer { .noData(name, type: type, negativeTTL: negativeTTL) }

    /// The steps that a question of a type may take: the last one is the first whose group leaves the type out.
    func limited(_ steps: [Step], to type: RecordType) -> [Step] {
        guard leavesOutTypes, let end = steps.firstIndex(where: { leavesOut($0.group, type) }) else { return steps }
        var limited = Array(steps[...end])
        limited[end].hedgeAfter = nil
        return limited
    }

    /// Stands in a basis for the step whose group leaves the type out; 0: there is none.
    /// - Parameter ofAccounts: for what accounts say, about which other groups do not decide.
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
