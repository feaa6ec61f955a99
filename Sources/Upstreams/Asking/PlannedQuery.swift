import Base
import Forwarding
import Streams

/// An order of the plan.
enum PlanAction: Equatable {
    /// Begin to connect; ``ConnectionPlan/established(_:at:)`` or ``ConnectionPlan/ended(_:_:_:hasBegun:at:)`` follows.
    case dial(ConnectionNumber)
    /// Send the query on the connection when it is established.
    /// - Parameters:
    ///   - wasIdle: Whether no query was under way there; octets that have come would be taken for its answer.
    ///   - isRace: Whether the query is under way on another connection as well.
    case send(QueryNumber, on: ConnectionNumber, wasIdle: Bool, isRace: Bool)
    /// The answer is no longer needed from this connection.
    case cancel(QueryNumber, on: ConnectionNumber)
    case close(ConnectionNumber)
    /// The query has failed.
    /// - Parameter wasAnswered: Whether the server has answered about it.
    indirect case fail(QueryNumber, Failure, wasAnswered: Bool)
    /// The query waits for room, since this machine is short of what a further connection takes.
    case short(QueryNumber)
}

/// A query under way.
struct PlannedQuery {
    let asked: Tick
    /// When the query was last put on a connection, or that connection was established.
    var sent: Tick
    /// The connections that carry the query; none while it waits for room.
    var connections = Carriers()
    /// Whether the query waits for a connection with room, alone or beside a connection that is doubted.
    var isWaiting = false
    /// Nanoseconds of silence after which the query is raced; nil if it is not, or was already.
    var patience: UInt64?
    /// The first connection on which the query was put because the earlier ones were doubted.
    var second: ConnectionNumber?
    /// How often the query was sent again because its connection had ended or the server gave it up.
    var losses = 0
    /// How often such a connection had brought no answer.
    var unanswered = 0
    var refusals = 0

    /// How often a query is sent again while other queries are answered on the connections that it loses: a server that
    /// closes after some answers ends the connections of many queries until that habit is learned.
    static let mostLosses = 3

    init(at now: Tick) { (asked, sent) = (now, now) }

    /// When the query is raced unless there is an answer; nil if it is not, or waits for a connection.
    var racedAt: Tick? {
        guard let patience, !connections.isEmpty else { return nil }
        return Tick(nanoseconds: sent.nanoseconds &+ patience)
    }

    /// Whether the query is sent again after the end of a connection that carried it. Asking twice does no harm.
    /// - Parameters:
    ///   - answers: The answers that had come on the connection.
    ///   - isAlone: Whether no other query was under way on it.
    func goesOutAgain(after end: LinkEnd, answers: Int, isAlone: Bool) -> Bool {
        if case .protocolBroken = end { return losses < 1 }
        if answers > 0 { return losses - unanswered < Self.mostLosses }
        if isAlone { return losses < 1 }
        // A reset may destroy answers to other queries that had come and were not read yet.
        return unanswered < (losses > unanswered ? Self.mostLosses : 1)
    }
}

/// A few connections, at most ``ConnectionPlan/maximumRacing``: a list would take heap memory for each query.
struct Carriers {
    private var numbers = InlineArray<3, ConnectionNumber>(repeating: 0)
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func append(_ number: ConnectionNumber) {
        numbers[count] = number
        count += 1
    }

    mutating func popLast() -> ConnectionNumber? {
        guard count > 0 else { return nil }
        count -= 1
        return numbers[count]
    }

    mutating func remove(_ number: ConnectionNumber) {
        let before = exchange(&self, with: Carriers())
        for index in 0..<before.count where before.numbers[index] != number { append(before.numbers[index]) }
    }

    var all: [ConnectionNumber] { (0..<count).map { numbers[$0] } }

    func contains(where isMeant: (ConnectionNumber) -> Bool) -> Bool {
        for index in 0..<count where isMeant(numbers[index]) { return true }
        return false
    }
}

/// The plan's state of a connection.
struct PlannedConnection {
    var carried: [QueryNumber] = []
    /// The most requests that the server takes at once, as far as the server has announced it.
    var mostAtOnce: Int
    var isEstablished = false
    /// Whether the connection takes no further query, and is closed when none is under way.
    var isDraining = false
    /// Whether a query was sent again elsewhere because this connection was silent. It gets none until octets come.
    var isDoubted = false
    /// The numbers of queries that were sent on the connection, and of answers that came on it.
    var queries = 0
    var answers = 0
    /// When the connection became idle, in nanoseconds; 0 if it is not idle.
    var idleSince: UInt64 = 0
    /// When octets last came.
    var heardAt = Tick(nanoseconds: 0)
    /// How long the connection had been idle when its last query was sent, in nanoseconds, until octets come: the
    /// server may have closed the connection before any query reached it.
    var idleBefore: UInt64 = 0
}
