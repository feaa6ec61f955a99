public import Base

/// The source of a client's answer.
public enum Answerer: Sendable, Equatable {
    /// The cache, while the answer was fresh.
    case cache
    /// The cache, with a stale answer, since no server answered in time.
    case stale
    /// The daemon itself, by its rules, the hosts file or its limits.
    case daemon
    /// A server of a group, now.
    case server(GroupID, Server)
    /// A group that answers by itself.
    case group(GroupID)
    /// The fleet's store, with this group's answer to another daemon.
    case sharedCache(GroupID)
    /// No server could be asked, or none answered: the client gets the failure.
    case noServer
}
