package import Base
package import DNSWire

/// A question that was answered, as a watcher sees it.
package struct Watched: Sendable, Equatable {
    /// When it was answered, in microseconds since 1970.
    package var at: UInt64
    /// From its arrival to its answer, in nanoseconds.
    package var took: UInt64
    /// Who asked.
    package var client: IPAddress
    /// What it came over.
    package var transport: Tally.Transport
    /// In wire form, in the client's letters' case; empty for a message whose question could not be read.
    package var name: [UInt8]
    /// Means nothing without a name.
    package var type: RecordType
    /// What the client was told.
    package var code: ResponseCode
    /// Who answered.
    package var by: By
    /// The most readable way in which the question was sent to servers before it was answered.
    package var way: Exposure
    /// What the client was told of the reason, if it was; from anybody.
    package var reason: String

    /// Where the answer came from.
    package enum By: Sendable, Equatable {
        case cache, stale, hosts
        /// The daemon itself: names that RFCs reserve, refusals, limits.
        case daemon
        /// The client is told that no server has answered.
        case nobody
        case server(group: String, String)
        /// A group that answers by itself.
        case group(String)

        /// What filters and programs call it; a server is called by its group.
        package var word: String {
            switch self {
            case .cache: "cache"
            case .stale: "stale"
            case .hosts: "hosts"
            case .daemon: "daemon"
            case .nobody: "nobody"
            case .server(let group, _), .group(let group): group
            }
        }

        /// The words of those who answer and are no group.
        package static let words = [By.cache, .stale, .hosts, .daemon, .nobody].map(\.word)
    }

    /// - Parameter name: in wire form; empty: the question could not be read.
    package init(
        at: UInt64, took: UInt64, client: IPAddress, transport: Tally.Transport, name: [UInt8], type: RecordType,
        code: ResponseCode, by: By, way: Exposure = .none, reason: String = ""
    ) {
        (self.at, self.took, self.client, self.transport) = (at, took, client, transport)
        (self.name, self.type, self.code, self.by) = (name, type, code, by)
        (self.way, self.reason) = (way, reason)
    }
}
