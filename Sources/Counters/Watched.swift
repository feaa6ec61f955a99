package import Base
package import DNSWire

/// An answered question, for a watcher.
package struct Watched: Sendable, Equatable {
    /// The time of the answer, in microseconds since 1970.
    package var at: UInt64
    /// The nanoseconds from the question's arrival to its answer.
    package var took: UInt64
    /// The client's address.
    package var client: IPAddress
    /// The transport of the question.
    package var transport: Tally.Transport
    /// The name in wire form, in the client's case of letters; empty: the message's question could not be read.
    package var name: [UInt8]
    /// The type of the question; undefined without a name.
    package var type: RecordType
    /// The response code of the answer.
    package var code: ResponseCode
    /// The source of the answer.
    package var by: By
    /// The least protected way in which the question was sent to servers before it was answered.
    package var way: Exposure
    /// The reason in the answer, from any source; empty: the answer has no reason.
    package var reason: String

    /// The source of an answer.
    package enum By: Sendable, Equatable {
        case cache, stale, hosts
        /// The daemon itself, for names that RFCs reserve, refusals and limits.
        case daemon
        /// No server has answered, so the client gets a failure.
        case noServer
        case server(group: String, String)
        /// A group that answers by itself.
        case group(String)

        /// The name for filters and programs. A server has the name of its group.
        package var word: String {
            switch self {
            case .cache: "cache"
            case .stale: "stale"
            case .hosts: "hosts"
            case .daemon: "daemon"
            case .noServer: "nobody"
            case .server(let group, _), .group(let group): group
            }
        }

        /// The names of the sources that are no group.
        package static let words = [By.cache, .stale, .hosts, .daemon, .noServer].map(\.word)
    }

    /// - Parameter name: The name in wire form; empty: the question could not be read.
    package init(
        at: UInt64, took: UInt64, client: IPAddress, transport: Tally.Transport, name: [UInt8], type: RecordType,
        code: ResponseCode, by: By, way: Exposure = .none, reason: String = ""
    ) {
        (self.at, self.took, self.client, self.transport) = (at, took, client, transport)
        (self.name, self.type, self.code, self.by) = (name, type, code, by)
        (self.way, self.reason) = (way, reason)
    }
}
