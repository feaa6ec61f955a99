public import Base

/// Where a client's answer came from.
public enum Answerer: Sendable, Equatable {
    /// The cache, while the answer was fresh.
    case cache
    /// The cache, with what is stale, because no server answered, or none in time.
    case stale
    /// The daemon itself, by its rules, the hosts file or its limits.
    case daemon
    /// A server of a group, now.
    case server(GroupID, Server)
    /// A group that answers by itself.
    case group(GroupID)
    /// The store of the fleet, with this group's answer to another daemon.
    case sharedCache(GroupID)
    /// No server could be asked, or none answered: the client is told of the failure.
    case nobody
}
