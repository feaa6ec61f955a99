import DNSCache
public import DNSWire

/// The route of a question, by its name and type alone.
public enum Route: Sendable, Equatable {
    /// The daemon answers without asking a group, or a group answers by itself.
    case answer(Answer, by: GroupID? = nil)
    /// These groups are asked, in this order; at least one.
    case ask([Step])
    /// HTTPS or SVCB of a name whose addresses come from an HTTPDNS account, the first of these groups. The group of
    /// the step with this index is asked for the record, and its hints are replaced; nil: the answer is "no such
    /// record". If the account is known to have no record of the name, its other steps are asked.
    case serviceBinding([Step], asked: Int?)
    /// The answer is an alias with the answer about its target, which takes its own route (``Translations``): a group
    /// has the alias, or the name is the reverse name of an address under the NAT64 prefix.
    case alias(of: Name, by: GroupID?)

    /// Whether one of these groups may be asked.
    func asks(_ groups: Set<GroupID>) -> Bool {
        switch self {
        case .ask(let steps), .serviceBinding(let steps, _): steps.contains { groups.contains($0.group) }
        case .answer, .alias: false
        }
    }
}
