import Base
import Forwarding
import Log

/// Finds the groups that are out of use as a whole, since each of their servers has failed several times in a row. The
/// states of groups go in, changes come out.
struct Outages {
    private(set) var out: Set<GroupID> = []
    /// The count of failed queries when the groups were last examined.
    private var failuresSeen: UInt64 = 0

    /// The failures in a row that each server must have: a single failure may be an accident.
    static let failures = ServerState.mostFailures

    /// Whether a query has failed since the last call, so that any group may be out of use; else only groups that are
    /// out of use may have changed.
    mutating func haveFailed(_ failures: UInt64) -> Bool {
        defer { failuresSeen = failures }
        return failures != failuresSeen
    }

    /// - Parameter groups: All groups that may have changed. A group that is out of use and absent was removed.
    /// - Returns: The groups that went out of use or returned.
    mutating func update(_ groups: [GroupOverview]) -> [GroupOverview] {
        let before = out
        out = Set(groups.filter { Self.isOut($0, wasOut: before.contains($0.id)) }.map(\.id))
        // A group that lost its servers by other settings is not reported as back.
        return groups.filter { !$0.servers.isEmpty && out.contains($0.id) != before.contains($0.id) }
    }

    private static func isOut(_ group: GroupOverview, wasOut: Bool) -> Bool {
        let health = group.servers.map(\.health)
        // A single answer ends an outage; a change of servers does not.
        if wasOut { return !health.isEmpty && !health.contains { $0.consecutiveFailures == 0 && $0.answers > 0 } }
        return !health.isEmpty && health.allSatisfy { $0.consecutiveFailures >= failures }
    }
}

extension Report {
    /// A group is out of use as a whole, or in use again.
    /// - Parameters:
    ///   - groups: All groups in use.
    ///   - out: The groups that are out of use.
    func outage(of group: GroupOverview, among groups: [GroupOverview], out: Set<GroupID>) {
        let isService = group.id == .httpdns
        let subject = "\(group.title) as a whole"
        if out.contains(group.id) {
            say(
                .warning, isService ? .serviceLost : .groupLost, about: subject, Self.outOfUse(group, groups, out),
                ["group": group.name])
        } else {
            say(
                .notice, isService ? .serviceBack : .groupBack, about: subject, "\(group.title) is in use again",
                ["group": group.name])
        }
    }

    /// The effect on the names of a group that is out of use.
    private static func outOfUse(_ group: GroupOverview, _ groups: [GroupOverview], _ out: Set<GroupID>) -> String {
        let others = group.successors.compactMap { id in groups.first { $0.id == id && !$0.servers.isEmpty } }
        if let next = others.first(where: { !out.contains($0.id) }) {
            return "\(group.title) is out of use: \(next.title) is asked in its place"
        }
        let account = groups.first { $0.id == .httpdns && !$0.servers.isEmpty }
        let mates = group.id == .fallback ? groups.filter { $0.id == .httpdns && out.contains($0.id) } : others
        let head =
            "\(group.title) is out of use"
            + (mates.isEmpty ? "" : ", and so is \(mates.map(\.title).joined(separator: " and "))")
        switch group.id {
        case .fallback where account != nil && mates.isEmpty:
            return "\(head): what HTTPDNS does not answer gets SERVFAIL, or what is stale"
        case .httpdns, .fallback: return "\(head): questions get SERVFAIL, or what is cached, even if stale"
        default: return "\(head): its names get SERVFAIL, or what is stale"
        }
    }
}
