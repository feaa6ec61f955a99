package import Base
package import DNSWire

/// A question that was answered, as a watcher sees it: all but the name, which stays where the message has it.
package struct Watched: Sendable, Equatable {
    /// When it was answered, in microseconds since 1970.
    package var at: UInt64
    /// From its arrival to its answer, in nanoseconds.
    package var took: UInt64
    package var client: IPAddress
    /// Whether it came over TCP.
    package var isStream: Bool
    /// Means nothing for a message whose question could not be read, which has no name either.
    package var type: RecordType
    package var code: ResponseCode
    package var by: By

    /// Where the answer came from.
    package enum By: Sendable, Equatable {
        case cache, stale, hosts
        /// The daemon itself: names that RFCs reserve, refusals, limits.
        case daemon
        /// The client is told that no server has answered.
        case nobody
        case server(group: String, String)
    }

    package init(
        at: UInt64, took: UInt64, client: IPAddress, isStream: Bool, type: RecordType, code: ResponseCode, by: By
    ) {
        (self.at, self.took, self.client, self.isStream) = (at, took, client, isStream)
        (self.type, self.code, self.by) = (type, code, by)
    }
}
