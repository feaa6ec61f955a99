import DNSCache
public import DNSWire

/// What becomes of a question, by its name and type alone.
public enum Route: Sendable, Equatable {
    /// Answered by the daemon without asking a group, or by a group that answers by itself.
    case answer(Answer, by: GroupID? = nil)
    /// These groups are asked, in this order; at least one.
    case ask([Step])
    /// HTTPS or SVCB of a name whose addresses come from an HTTPDNS account, the first of these groups: the group of the
    /// step with this index is asked for the record, and its hints are replaced; nil: answered "no such record". Unless the account is known to have no record of the
    /// name at all.
    case serviceBinding([Step], asked: Int?)
    /// The answer is that about another name, which goes its own route, behind an alias (``Translations``): by a group that says so,
    /// or since the name is the reverse name of an address under the translator's prefix.
    case alias(of: Name, by: GroupID?)

    /// Whether one of these groups may be asked.
    func asks(_ groups: Set<GroupID>) -> Bool {
        switch self {
        case .ask(let steps), .serviceBinding(let steps, _): steps.contains { groups.contains($0.group) }
        case .answer, .alias: false
        }
    }
}
