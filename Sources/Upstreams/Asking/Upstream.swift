package import Base
package import Forwarding

/// Sends queries to the servers of one group and returns their outcomes. An upstream decides nothing: the forwarder
/// decides which server is asked, when a query is repeated and how long to wait. Confined to the forwarder's loop.
package protocol Upstream: AnyObject {
    /// Called once with the outcome of each query that was not cancelled; perhaps while the query is being sent.
    var settle: Settle { get set }
    /// Called when the kernel has taken a query in a datagram, or an established connection has; perhaps several times,
    /// and before the query's outcome.
    var wrote: (QueryID) -> Void { get set }
    /// Called when the kernel has refused a query's datagram, or a connection for the query; perhaps several times.
    var lost: (QueryID) -> Void { get set }
    func ask(_ id: QueryID, _ server: Server, _ ask: Ask, at now: Tick)
    /// Repeats the query to the same server in another way; the first answer counts.
    func askAgain(_ id: QueryID)
    /// - Parameter isOverdue: Whether no answer came within the time of an attempt.
    func cancel(_ id: QueryID, isOverdue: Bool)
    /// Sets the servers of the group: connections to other servers are closed, but not while queries are under way.
    func keep(_ servers: [Server])
    /// This machine's addresses or routes have changed: existing connections are not trusted any more.
    func networkChanged()
    func close()
    /// Whether no query is under way.
    var isIdle: Bool { get }
    /// When ``expire(at:)`` must be called; nil for never.
    var nextDeadline: Tick? { get }
    func expire(at now: Tick)
}

extension Upstream {
    package func cancel(_ id: QueryID) { cancel(id, isOverdue: false) }
}

/// - Parameter toRepeat: Whether the answer is to the second attempt.
package typealias Settle = (_ id: QueryID, _ outcome: Outcome, _ toRepeat: Bool) -> Void
