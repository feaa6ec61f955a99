import Base
import Transport

/// The replies of one turn, sent together while they leave through the same socket.
struct TurnReplies: ~Copyable {
    private var replies = ReplyBatch()
    private var socket: DatagramSocket?

    mutating func add(
        through socket: DatagramSocket, to client: SocketAddress, from source: IPAddress?,
        write: (inout MutableSpan<UInt8>) -> Int
    ) {
        if self.socket !== socket || replies.isFull { flush() }
        self.socket = socket
        var room = unsafe replies.next().mutableSpan
        let length = write(&room)
        replies.commit(length, to: client, from: source)
    }

    mutating func flush() {
        if let socket, replies.count > 0 { replies.flush(socket) }
        socket = nil
    }
}
