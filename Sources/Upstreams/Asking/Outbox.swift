import Streams

/// Holds the queries of one turn of a loop until its end, when those for one server are sent in one piece: they share a
/// TLS record and a system call. Confined to its loop.
package final class Outbox {
    private var senders: [any Sender] = []
    /// A list that was used, kept for its memory.
    private var spare: [any Sender] = []

    package init() {}

    func add(_ sender: any Sender) {
        if senders.last !== sender { senders.append(sender) }
    }

    /// - Returns: Whether there was anything to send. Queries that could not be sent were settled, which may leave more to
    ///   do.
    package func send() -> Bool {
        guard !senders.isEmpty else { return false }
        // What is asked meanwhile goes to the other list.
        swap(&senders, &spare)
        var sending = exchange(&spare, with: [])
        for index in sending.indices { sending[index].flush() }
        while sending.popLast() != nil {}
        spare = sending
        return true
    }
}

/// Has something to send.
protocol Sender: AnyObject {
    /// Sends the queries that were gathered, if there still are any.
    func flush()
}

extension StreamLink: Sender {}
