import Base
import Transport

/// A UDP port from which queries go to one server, several at a time. Confined to its loop.
///
/// A forger who cannot see the queries must guess (RFC 5452 §4) the port, one of some 28,000 (14.8 bits) from which the
/// kernel chooses; the ID (16 bits); and the case of each letter of the name, if the server repeats it
/// (`Query.mixCase`, up to 32 bits). A forged answer matches one ID of one port, and is accepted only for the question
/// sent under that ID: so sharing a port makes no query easier to hit. Learning the port first would help a forger:
/// therefore the socket is connected, a port takes queries only for a moment, and stays open hardly longer than a port
/// for each query would. An ICMP error ends only the query whose ID it quotes, which is as hard to guess.
final class QueryPort: EventHandler {
    private var socket: QuerySocket
    private var registration: Registration?
    private let loop: EventLoop
    private let received: (QueryPort) -> Void
    /// When the port stops taking queries, in the time of ``Clock``.
    private let end: UInt64
    private var isRetired = false
    /// The IDs of all queries that the port ever took, with the queries that still wait for an answer.
    private var queries: [(id: UInt16, sent: SentQuery?)] = []
    private var waiting = 0

    /// How long a port takes queries after it was opened, in nanoseconds: the duration of a busy turn of the loop.
    static let takingTime: UInt64 = 250_000
    /// The most queries that a port ever takes: a socket's buffer holds their answers.
    static let maximumQueries = 64

    /// - Parameter received: Called when datagrams may have come, until ``close()``.
    init(
        to endpoint: Endpoint, by egress: Egress, loop: EventLoop, at now: Tick,
        received: @escaping (QueryPort) -> Void
    ) throws(SystemError) {
        (self.loop, self.received) = (loop, received)
        end = now.nanoseconds &+ Self.takingTime
        socket = try QuerySocket.open(to: endpoint, by: egress)
        // The socket is watched from the first send on: while an epoll watches it, each datagram costs a tenth more.
        registration = try loop.register(socket.descriptor, [], self)
    }

    func ready(_ readiness: Readiness) { received(self) }

    var isOpen: Bool { registration != nil }

    /// Whether no query of the port waits for an answer.
    var isIdle: Bool { waiting == 0 }

    func takesQueries(at now: Tick) -> Bool {
        !isRetired && now.nanoseconds < end && queries.count < Self.maximumQueries
    }

    /// Makes the port take no more queries.
    func retire() { isRetired = true }

    /// An ID that no query of this port ever had.
    func newID(_ random: () -> UInt16) -> UInt16 {
        while true {
            let id = random()
            if index(of: id) == nil { return id }
        }
    }

    /// Adds a query that will leave from the port.
    func add(_ sent: SentQuery) {
        queries.append((sent.id, sent))
        waiting += 1
    }

    func send(_ batch: inout SendBatch, isDropped: (Int) -> Void) throws(SystemError) {
        defer { if let registration { loop.update(registration, .readable) } }
        try socket.send(&batch, isDropped: isDropped)
    }

    func receive(into batch: inout ReceiveBatch) -> [QuerySocket.ReportedError] { socket.receive(into: &batch) }

    func isFromServer(_ batch: borrowing ReceiveBatch, _ index: Int) -> Bool { socket.isFromResolver(batch, index) }

    /// The query of an ID.
    enum Owner {
        case query(SentQuery)
        /// A query that was answered or given up.
        case endedQuery
        case nothing
    }

    func owner(of id: UInt16) -> Owner {
        guard let index = index(of: id) else { return .nothing }
        return queries[index].sent.map { .query($0) } ?? .endedQuery
    }

    /// The query that an ICMP error fails: the quoted query, if the error reports that the server's port is closed.
    func owner(of error: QuerySocket.ReportedError) -> Owner {
        error.isRefusal ? error.id.map(owner(of:)) ?? .nothing : .nothing
    }

    private func index(of id: UInt16) -> Int? {
        for index in queries.indices where queries[index].id == id { return index }
        return nil
    }

    /// The answer to a query is no longer awaited.
    func ended(_ sent: SentQuery) {
        guard let index = index(of: sent.id), queries[index].sent.take() != nil else { return }
        waiting -= 1
    }

    /// Gives up all queries under way, and returns them.
    func takeWaiting() -> [SentQuery] {
        guard waiting > 0 else { return [] }
        waiting = 0
        return queries.indices.compactMap { queries[$0].sent.take() }
    }

    func close() {
        isRetired = true
        // Queries retain their ports, and the ports would retain the queries.
        _ = takeWaiting()
        if let registration { loop.unregister(registration, closing: true) }
        registration = nil
        socket.close()
    }
}
