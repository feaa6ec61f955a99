import Base
import Forwarding

/// A query under way, with everything needed to send it again.
final class StreamQuery: ForQuery {
    let id: QueryID
    /// The id by which conversations know it.
    let number: UInt64
    let pool: StreamPool
    let ask: Ask
    let sent: Tick
    var request: [UInt8] = []
    /// The connections that carry it; none while it waits for room.
    var connections = SmallList<StreamConnection>()
    /// The first connection on which it was put when it was asked again.
    var repeated: StreamConnection?
    /// How often it was sent again because its connection was closed or the server gave it up.
    var retries = 0
    var isAnew = false
    var refusals = 0

    init(_ id: QueryID, _ number: UInt64, _ pool: StreamPool, _ ask: Ask, at now: Tick) {
        (self.id, self.number, self.pool, self.ask, sent) = (id, number, pool, ask, now)
    }

    func put(on connection: StreamConnection, at now: Tick) { connection.put(self, at: now) }
}
