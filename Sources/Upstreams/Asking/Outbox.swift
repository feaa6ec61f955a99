import Streams

/// Gathers the queries of one turn of a loop until its end, when the queries for one server are sent together: these
/// queries share a TLS record and a system call. Confined to its loop.
package final class Outbox {
    private var senders: [any Sender] = []
    /// The other list, retained for its memory.
    private var spare: [any Sender] = []

    package init() {}

    func add(_ sender: any Sender) {
        if senders.last !== sender { senders.append(sender) }
    }

    /// - Returns: Whether there were queries to send. Queries that could not be sent were settled, which may leave more
    ///   work.
    package func send() -> Bool {
        guard !senders.isEmpty else { return false }
        // Queries made meanwhile go to the other list.
        swap(&senders, &spare)
        var sending = exchange(&spare, with: [])
        for index in sending.indices { sending[index].flush() }
        while sending.popLast() != nil {}
        spare = sending
        return true
    }
}

/// An object with queries to send.
protocol Sender: AnyObject {
    /// Sends the gathered queries, if there still are any.
    func flush()
}

extension StreamLink: Sender {}
