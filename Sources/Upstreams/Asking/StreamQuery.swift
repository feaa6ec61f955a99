import Base
import Forwarding

/// A query under way, with all that is needed to send it again.
final class StreamQuery {
    let id: QueryID
    let pool: StreamPool
    let ask: Ask
    let asked: Tick
    /// The query's number in the plan and in conversations.
    var number: QueryNumber { id.number }
    var request: [UInt8]
    /// Whether the request was written again because the server did not answer the first request properly.
    var isRewritten = false
    /// Whether the query was counted, which happens when it first gets a connection.
    var isCounted = false

    init(_ id: QueryID, _ pool: StreamPool, _ ask: Ask, _ request: [UInt8], at now: Tick) {
        (self.id, self.pool, self.ask, self.request, asked) = (id, pool, ask, request, now)
    }
}
