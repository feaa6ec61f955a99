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

    /// Writes a client's reply; a reply over a stream is passed on at once.
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
        case .stream(let deliver):
            var bytes = [UInt8](
                repeating: 0, count: min(Int(UInt16.max), answer.body.count + Self.mostAddedOctets))
            var room = bytes.mutableSpan
            let length = Reply.write(
                answer, age: age, to: client.question, query: client.query.span, limit: Int(UInt16.max), into: &room)
            bytes.removeLast(bytes.count - length)
            deliver(bytes)
        }
    }

    /// The most octets that are added to a body: a header and an OPT record with an extended error, and never less than
    /// the smallest limit of a reply.
    private static let mostAddedOctets = 512

    mutating func flush() {
        if let socket, replies.count > 0 { replies.flush(socket) }
        socket = nil
    }
}
