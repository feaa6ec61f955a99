import Base
import DNSWire
import Forwarding
import Transport

/// The replies of one turn, sent together while they leave through the same socket.
struct TurnReplies: ~Copyable {
    private var replies = SendBatch()
    private var socket: DatagramSocket?
    private let largeReplies: LargeReplies

    init(_ largeReplies: LargeReplies) { self.largeReplies = largeReplies }

    /// Writes a client's reply; an answer over a stream is passed on at once.
    mutating func reply(to client: Client, _ answer: Answer, _ age: Reply.Age, at now: Tick) {
        switch client.way {
        case .datagram(let socket, let address, let source):
            if self.socket !== socket || replies.isFull { flush() }
            self.socket = socket
            var room = unsafe replies.next().mutableSpan
            var length = Reply.write(
                answer, age: age, to: client.question, query: client.query.span,
                limit: Reply.udpLimit(client.question, isLoopback: address.address.isLoopback), into: &room)
            if length > LargeReplies.longestFree, !client.asker.isProven,
                !largeReplies.add(client.asker.source, at: now)
            {
                length = Reply.truncate(&room, client.question, query: client.query.span)
            }
            replies.commit(length, to: address, from: source)
        case .stream(let deliver): deliver(client, answer, age)
        }
    }

    mutating func flush() {
        if let socket, replies.count > 0 { replies.flush(socket) }
        socket = nil
    }
}
