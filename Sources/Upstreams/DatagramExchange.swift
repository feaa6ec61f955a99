import Base
import Transport

/// One query over UDP, on a socket of its own: its port is as random as its id (RFC 5452 §9). Confined to its loop.
final class DatagramExchange: EventHandler {
    let sent: SentQuery
    /// The server was silent, and this is the second time that it is asked.
    let isRepeat: Bool
    private let scratch: Scratch
    private let loop: EventLoop
    private var socket: QuerySocket
    private var registration: Registration?
    private let received: (DatagramExchange, Received) -> Void

    /// What a look at the socket has brought.
    enum Received {
        /// A message from the server, in the scratch memory, of so many octets. Unless the exchange is closed, the wait
        /// goes on.
        case message(Int)
        /// From another address or port than the server's.
        case stranger
        case failed(SystemError)
    }

    /// Datagrams read before anybody else has a turn.
    private static let turn = 16

    init(
        _ sent: SentQuery, isRepeat: Bool, scratch: Scratch, loop: EventLoop,
        received: @escaping (DatagramExchange, Received) -> Void
    ) throws(SystemError) {
        (self.sent, self.isRepeat, self.scratch, self.loop) = (sent, isRepeat, scratch, loop)
        self.received = received
        socket = try QuerySocket.open(to: sent.server.endpoints[0])
        // Not sent for want of room is as good as lost: the deadline finds it.
        let message = sent.bytes
        _ = try socket.send(message.span)
        registration = try loop.register(socket.descriptor, .readable, self)
    }

    func ready(_ readiness: Readiness) {
        do throws(SystemError) {
            for _ in 0..<Self.turn where registration != nil {
                switch try socket.receive(into: scratch) {
                case .wouldBlock: return
                case .stranger: received(self, .stranger)
                case .bytes(let count): received(self, .message(count))
                }
            }
        } catch {
            received(self, .failed(error))
        }
    }

    func close() {
        if let registration { loop.unregister(registration, closing: true) }
        registration = nil
        socket.close()
    }
}
