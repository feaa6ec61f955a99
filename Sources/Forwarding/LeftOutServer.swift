public import Base

/// A server of a file or key that is not asked.
public struct LeftOutServer: Sendable, Hashable {
    public let server: Endpoint
    /// The file or key that names it.
    public let source: String
    public let reason: Reason

    public enum Reason: Sendable, Hashable {
        /// It is this daemon itself, or asks it.
        case loop
        /// It is of a network link with this name, which is not for all names.
        case link(String)
    }

    /// Each parameter sets the property of the same name.
    public init(_ server: Endpoint, in source: String, _ reason: Reason) {
        (self.server, self.source, self.reason) = (server, source, reason)
    }

    /// The reason, to follow the server.
    public var brief: String {
        switch reason {
        case .loop: "is left out: it is this daemon itself or asks it"
        case .link(let name): "is left out: it is of \(name), which is not for all names"
        }
    }

    /// The server and the reason, as a sentence without its end.
    public var words: String {
        switch reason {
        case .loop:
            "\(source) names \(server), which is this daemon itself or asks it: left out, since it would ask itself without end"
        case .link(let name):
            "\(source) names \(server) of \(name), which is not for all names: left out; for the names of that network, a group in [upstreams] can name it"
        }
    }
}
