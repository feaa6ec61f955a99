import Base
import Transport

/// A UDP port from which queries go to one server, several at a time. Confined to its loop.
///
/// What somebody must guess who cannot see the queries, and answers in the server's name (RFC 5452 §4): the port, one of
/// some 28,000 (14.8 bits) as the kernel draws it; the id (16 bits); and the case of each letter of the name, if the server
/// repeats it (`Query.mixCase`, up to 32 bits). An answer counts for one id of one port and for the question that went out
/// under it, so of all queries on a port a forged answer can fit one: that they share it makes none of them easier to hit.
/// A port that can be learned beforehand would: therefore it takes queries for a moment only, and is open no longer than
/// one of its own for each query would be, but for that moment.
final class QueryPort: EventHandler {
    private var socket: QuerySocket
    private var registration: Registration?
    private let loop: EventLoop
    private let received: (QueryPort) -> Void
    /// It takes queries before then.
    private let end: UInt64
    private var isRetired = false
    /// The ids of all queries that it ever took, and by the same places those that wait for an answer.
    private var ids: [UInt16] = []
    private var queries: [SentQuery?] = []
    private var waiting = 0

    /// For so many nanoseconds from its opening a port takes queries: as long as a turn of the loop lasts that has many.
    /// Somebody who tries ports, and is told by ICMP of those that are closed, learns of some thousand in a second at most
    /// (`net.ipv4.icmp_msgs_per_sec`).
    static let takingTime: UInt64 = 250_000
    /// Queries that a port takes in its life: their answers fit into what a socket can hold, and no more of them fail when one
    /// forged message says that nobody listens at the server's.
    static let maximumQueries = 64

    /// - Parameter received: Told when something may have come, until ``close()``.
    init(to endpoint: Endpoint, loop: EventLoop, at now: Tick, received: @escaping (QueryPort) -> Void)
        throws(SystemError)
    {
        (self.loop, self.received) = (loop, received)
        end = now.nanoseconds &+ Self.takingTime
        socket = try QuerySocket.open(to: endpoint)
        registration = try loop.register(socket.descriptor, .readable, self)
    }

    func ready(_ readiness: Readiness) { received(self) }

    var isOpen: Bool { registration != nil }

    /// No query waits here for an answer.
    var isIdle: Bool { waiting == 0 }

    func takesQueries(at now: Tick) -> Bool {
        !isRetired && now.nanoseconds < end && ids.count < Self.maximumQueries
    }

    /// It takes no more queries.
    func retire() { isRetired = true }

    /// An id that no query of this port has or had.
    func newID(_ random: () -> UInt16) -> UInt16 {
        while true {
            let id = random()
            if !ids.contains(id) { return id }
        }
    }

    /// A query is to leave from here.
    func add(_ sent: SentQuery) {
        ids.append(sent.id)
        queries.append(sent)
        waiting += 1
    }

    /// Whom it is for.
    var server: SocketAddress { socket.resolver }

    func send(_ batch: inout ReplyBatch) throws(SystemError) { try socket.send(&batch) }

    func receive(into batch: inout ReceiveBatch) throws(SystemError) { try socket.receive(into: &batch) }

    func isFromServer(_ batch: borrowing ReceiveBatch, _ index: Int) -> Bool { socket.isFromResolver(batch, index) }

    /// What an id stands for here.
    enum Meaning {
        case query(SentQuery)
        /// One that has had its answer, or that nobody waits for any more.
        case endedQuery
        case nothing
    }

    func meaning(of id: UInt16) -> Meaning {
        guard let place = ids.firstIndex(of: id) else { return .nothing }
        return queries[place].map { .query($0) } ?? .endedQuery
    }

    /// Nobody waits for its answer any more.
    func ended(_ sent: SentQuery) {
        guard let place = ids.firstIndex(of: sent.id), queries[place].take() != nil else { return }
        waiting -= 1
    }

    /// All that wait, which do so no longer.
    func takeWaiting() -> [SentQuery] {
        waiting = 0
        let all = queries.compactMap(\.self)
        queries = queries.map { _ in nil }
        return all
    }

    func close() {
        isRetired = true
        if let registration { loop.unregister(registration, closing: true) }
        registration = nil
        socket.close()
    }
}
