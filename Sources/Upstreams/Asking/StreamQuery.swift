import Base
import Forwarding

/// A query under way, with what is needed to send it again.
final class StreamQuery {
    let id: QueryID
    let pool: StreamPool
    let ask: Ask
    let asked: Tick
    /// By which the plan and conversations know it.
    var number: QueryNumber { id.number }
    var request: [UInt8]
    /// The request was written once more because the server did not answer the first one as it should.
    var isRewritten = false
    /// It has got a connection.
    var isCounted = false

    init(_ id: QueryID, _ pool: StreamPool, _ ask: Ask, _ request: [UInt8], at now: Tick) {
        (self.id, self.pool, self.ask, self.request, asked) = (id, pool, ask, request, now)
    }
}
