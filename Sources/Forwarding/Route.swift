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

    /// Whether two routes ask the same groups after the same ends, or give the same answer.
    func asksSameGroups(as other: Route) -> Bool {
        switch (self, other) {
        case (.ask(let a), .ask(let b)): Self.areSame(a, b)
        case (.serviceBinding(let a, let asked), .serviceBinding(let b, let other)):
            Self.areSame(a, b) && asked == other
        default: self == other
        }
    }

    private static func areSame(_ a: [Step], _ b: [Step]) -> Bool {
        a.map(\.group) == b.map(\.group) && a.dropFirst().map(\.after) == b.dropFirst().map(\.after)
    }

    /// Whether one of these groups may be asked.
    func asks(_ groups: Set<GroupID>) -> Bool {
        switch self {
        case .ask(let steps), .serviceBinding(let steps, _): steps.contains { groups.contains($0.group) }
        case .answer: false
        }
    }
}

/// What decides about an answer, beside what those say who are asked: where rules that have an equal one are in force, it is as
/// right as by those of the time when it was got.
public struct Standing: Equatable {
    /// Who is asked, or what is answered.
    public let route: Route
    /// Whether private addresses are removed.
    public let refusesPrivate: Bool
    let served: Audience

    /// Whether an answer is as right by one as by the other.
    public static func == (a: Standing, b: Standing) -> Bool {
        a.route.asksSameGroups(as: b.route) && a.refusesPrivate == b.refusesPrivate && a.served == b.served
    }
}
