import Base
import Forwarding

/// A query under way, with everything needed to send it again.
final class StreamQuery: ForQuery {
    let id: QueryID
    /// The id by which conversations know it.
    let number: UInt64
    let pool: StreamPool
    let ask: Ask
    let asked: Tick
    /// When it was last put on a connection, or that connection was established.
    var sent: Tick
    var request: [UInt8] = []
    /// The connections that carry it; none while it waits for room.
    var connections = SmallList<StreamConnection>()
    /// Whether it waits for a connection with room, alone or beside a connection that is silent.
    var isWaiting = false
    /// Nanoseconds of silence after which it is to be asked again; nil: it is not, or was already.
    var patience: UInt64?
    /// The first connection on which it was put when it was asked again.
    var repeated: StreamConnection?
    /// How often it was sent again because its connection was closed or the server gave it up.
    var retries = 0
    /// How often of these the connection had brought no answer.
    var unanswered = 0
    /// Whether it was asked before by another request.
    var isRewritten = false
    var refusals = 0

    /// How often a query may be refused unprocessed before it fails.
    static let maximumRefusals = 3

    init(_ id: QueryID, _ number: UInt64, _ pool: StreamPool, _ ask: Ask, at now: Tick) {
        (self.id, self.number, self.pool, self.ask, asked, sent) = (id, number, pool, ask, now, now)
    }

    /// When it is asked again unless there is an answer; nil: it is not, or waits for a connection.
    var doubtedAt: Tick? {
        guard let patience, !connections.isEmpty else { return nil }
        return Tick(nanoseconds: sent.nanoseconds &+ patience)
    }

    func isOn(_ connection: StreamConnection) -> Bool { !connections.allSatisfy { $0 !== connection } }
}
