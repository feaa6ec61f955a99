package import Base
package import Forwarding

/// Sends queries to the servers of one group and brings back their outcomes. It decides nothing: which server to ask,
/// when to ask again and how long to wait are the forwarder's decisions. Confined to the forwarder's loop.
package protocol Upstream: AnyObject {
    /// Called once with the outcome of each query that was not cancelled; perhaps while the query is being sent.
    var settle: Settle { get set }
    /// Called when a query has been handed to the kernel in a datagram, or to a connection that is established; perhaps several
    /// times, and before its outcome.
    var wrote: (QueryID) -> Void { get set }
    /// Called when the kernel has not taken a query's datagram; perhaps several times.
    var lost: (QueryID) -> Void { get set }
    func ask(_ id: QueryID, _ server: Server, _ ask: Ask, at now: Tick)
    /// Sends the same to the same server once more in another way; the first answer counts.
    func askAgain(_ id: QueryID)
    /// - Parameter isOverdue: the answer has not come within the time of an attempt.
    func cancel(_ id: QueryID, isOverdue: Bool)
    /// Sets the servers of the group: connections to others are closed, but not while queries are under way.
    func keep(_ servers: [Server])
    /// This machine's addresses or routes have changed: existing connections are not trusted any more.
    func networkChanged()
    func close()
    /// Whether no query is under way.
    var isIdle: Bool { get }
    /// When ``expire(at:)`` is to be called; nil: not needed.
    var nextDeadline: Tick? { get }
    func expire(at now: Tick)
}

extension Upstream {
    /// On connections nothing is lost so.
    package var lost: (QueryID) -> Void {
        get { { _ in } }
        set {}
    }

    package func cancel(_ id: QueryID) { cancel(id, isOverdue: false) }
}

/// - Parameter toRepeat: whether the answer is to the second attempt.
package typealias Settle = (_ id: QueryID, _ outcome: Outcome, _ toRepeat: Bool) -> Void
