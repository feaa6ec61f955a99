public import Base

/// A server that a file or key names and that is not asked.
public struct LeftOutServer: Sendable, Hashable {
    public let server: Endpoint
    /// The file or key that names it.
    public let source: String
    public let reason: Reason

    public enum Reason: Sendable, Hashable {
        /// It is this daemon itself, or asks it.
        case loop
        /// It is of a network link, whose name this is, that is not for all names.
        case link(String)
    }

    /// The parameters are those of the properties.
    public init(_ server: Endpoint, in source: String, _ reason: Reason) {
        (self.server, self.source, self.reason) = (server, source, reason)
    }

    /// Why, behind the server.
    public var brief: String {
        switch reason {
        case .loop: "is left out: it is this daemon itself or asks it"
        case .link(let name): "is left out: it is of \(name), which is not for all names"
        }
    }

    /// What is left out and why, in a sentence without an end.
    public var words: String {
        switch reason {
        case .loop:
            "\(source) names \(server), which is this daemon itself or asks it: left out, since it would ask itself without end"
        case .link(let name):
            "\(source) names \(server) of \(name), which is not for all names: left out; for the names of that network, a group in [upstreams] can name it"
        }
    }
}
