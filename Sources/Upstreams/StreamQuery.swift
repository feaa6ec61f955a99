import Base
import Forwarding

/// A query under way, with what is needed to send it again.
final class StreamQuery {
    let id: QueryID
    /// What conversations know it by.
    let number: UInt64
    let pool: StreamPool
    let ask: Ask
    let sent: Tick
    var request: [UInt8] = []
    /// Those that carry it; none while it waits for room.
    var connections = SmallList<StreamConnection>()
    /// The first that it was put on when it was asked again.
    var repeated: StreamConnection?
    /// It went out again because its connection was closed.
    var isRetried = false
    var isPlainer = false
    var refusals = 0

    init(_ id: QueryID, _ number: UInt64, _ pool: StreamPool, _ ask: Ask, at now: Tick) {
        (self.id, self.number, self.pool, self.ask, sent) = (id, number, pool, ask, now)
    }

    func put(on connection: StreamConnection, at now: Tick) { connection.put(self, at: now) }
}
