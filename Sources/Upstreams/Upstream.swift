package import Base
package import Forwarding

/// Puts queries to the servers of one group and brings back what came of each. It carries out and decides nothing: whom
/// to ask, when to ask again and how long to wait is the forwarder's affair. Confined to the forwarder's loop.
package protocol Upstream: AnyObject {
    /// Told how each query ended, once, unless it was cancelled; may be told while it is being put.
    var settle: Settle { get set }
    func ask(_ id: QueryID, _ server: Server, _ ask: Ask, at now: Tick)
    /// Puts the same to the same server once more, on another way than before; the first answer counts.
    func askAgain(_ id: QueryID)
    func cancel(_ id: QueryID)
    /// The group has these servers now: what is kept for others is let go of, but not what is under way.
    func keep(_ servers: [Server])
    /// This machine's addresses or routes have changed: no connection from before is trusted to reach anybody.
    func networkChanged()
    func close()
    /// When ``expire(at:)`` wants to be called; nil: not at all.
    var nextDeadline: Tick? { get }
    func expire(at now: Tick)
}

/// - Parameter toRepeat: the answer came to what was asked again.
package typealias Settle = (_ id: QueryID, _ outcome: Outcome, _ toRepeat: Bool) -> Void
