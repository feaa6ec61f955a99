import Forwarding
import Transport

/// The memory for datagrams that all query ports use in turn, with the queries in it that will be sent together.
final class QueryDatagrams {
    /// A datagram may be longer than the advertised size, but not longer than this.
    var incoming = ReceiveBatch(slots: 32, size: 65_535)
    private var outgoing = SendBatch()
    /// The port from which the added queries will leave; nil if there are none.
    private(set) var port: QueryPort?
    private var queries: [QueryID] = []

    /// Whether a query can be added; if not, the present ones must be sent first.
    func takes(_ sent: SentQuery) -> Bool { port === sent.port && !outgoing.isFull }

    func add(_ sent: SentQuery) {
        port = sent.port
        let room = unsafe outgoing.next()
        // The bytes are copied during the call.
        unsafe sent.bytes.withUnsafeBufferPointer { _ = unsafe room.update(fromContentsOf: $0) }
        outgoing.commit(sent.bytes.count)
        queries.append(sent.query.id)
    }

    /// - Parameters:
    ///   - wrote: Called for each added query whose datagram the kernel has taken.
    ///   - lost: Called for each other query.
    func send(_ wrote: (QueryID) -> Void, _ lost: (QueryID) -> Void) throws(SystemError) {
        // This retains the array's memory at the least cost.
        defer { while queries.popLast() != nil {} }
        var dropped: [Int] = []
        defer {
            for (index, query) in queries.enumerated() {
                if dropped.contains(index) { lost(query) } else { wrote(query) }
            }
        }
        try port.take()?.send(&outgoing) { dropped.append($0) }
    }
}
