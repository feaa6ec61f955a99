public import DNSWire
public import Names

/// Why a question takes its route: the first reason that holds.
public enum RouteReason: String, Sendable {
    /// The name is reserved, and the daemon answers it itself: see ``ReservedName``.
    case localhost, nonexistent, noData
    /// The name is the reverse name of an address under the NAT64 prefix, or `ipv4only.arpa`, which shows the prefix.
    case translated
    /// The name is one of those at which clients find the encrypted ways to ask the daemon.
    case designation
    /// The name is private, and the group for such names has no servers.
    case noPrivateNames
    /// As ``noPrivateNames``, and the network has named no server since the daemon began.
    case privateNamesAwaited
    /// Type ANY is answered here (RFC 8482).
    case any
    /// The hosts file has the answer.
    case hosts
    /// The group that takes the name answers by itself.
    case groupAnswers
    /// The group's `addressType` leaves the family out.
    case familyLeftOut
    /// The first group that would be asked leaves the type out.
    case typeLeftOut
    /// The question asks for addresses, which any group can give, but for a name in `bypass`; or the client validates,
    /// and all the client's answers come from the same groups.
    case addresses
    /// The question asks for HTTPS or SVCB of a name whose addresses come from an HTTPDNS account.
    case serviceBinding
    /// Only groups that carry whole messages are asked: the name has a meaning only in this network.
    case privateName, singleLabel
    /// Only groups that carry whole messages are asked: the name has octets that are syntax to an HTTPDNS service.
    case notHostname
    /// Only groups that carry whole messages are asked: an HTTPDNS account gives only addresses.
    case type
}

/// The group that takes a question, and the reason.
public struct PolicyDecision: Sendable, Equatable {
    /// The owner of a name.
    public enum Taker: Sendable, Equatable {
        case group(GroupID)
        /// No group takes the name, or the group for private names does.
        case reserved(ReservedName)
    }

    /// The owner of the name.
    public let taker: Taker
    /// The pattern that matched; nil if no pattern did.
    public let pattern: DomainPattern?
    /// The location of the pattern in the rules; nil if RFCs reserve the name.
    public let location: PatternLocation?
    /// The pattern by which another group leaves the name to this group; nil if there is none.
    public var exception: Exception?

    /// A pattern by which a group leaves out names that the group would take; or a pattern of the group's list, for a
    /// name that the daemon needs itself.
    public struct Exception: Sendable, Equatable {
        /// The group that leaves the name out.
        public let group: GroupID
        /// The pattern of the names that the group leaves out.
        public let pattern: DomainPattern
        /// The pattern's list, and its line in the list.
        public let location: PatternLocation
    }
}

/// The route of a question, by its name and type alone.
public enum Route: Sendable, Equatable {
    /// The daemon answers without asking a group, or a group answers by itself.
    case answer(Answer, by: GroupID? = nil)
    /// These groups are asked, in this order; at least one.
    case ask([Step])
    /// The question asks for HTTPS or SVCB of a name whose addresses come from an HTTPDNS account, the first of these
    /// groups. The group of the step with this index is asked for the record, and the record's hints are replaced; nil
    /// if the answer is "no such record". If the account has no record of the name, the steps that carry messages are
    /// asked.
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
