import Base
import Transport

/// One query over UDP, on a socket of its own: its port is as random as its id (RFC 5452 §9). Confined to its loop.
final class DatagramExchange: EventHandler {
    let sent: SentQuery
    /// Whether this is the second attempt, because the server was silent.
    let isRepeat: Bool
    private let scratch: Scratch
    private let loop: EventLoop
    private var socket: QuerySocket
    private var registration: Registration?
    private let received: (DatagramExchange, Received) -> Void

    /// The result of reading the socket.
    enum Received {
        /// A message from the server, of this many octets, in the scratch memory. Unless the exchange is closed, the
        /// wait goes on.
        case message(Int)
        /// A datagram from another address or port than the server's.
        case stranger
        case failed(SystemError)
    }

    /// The most datagrams read in one turn of the loop.
    private static let turn = 16

    init(
        _ sent: SentQuery, isRepeat: Bool, scratch: Scratch, loop: EventLoop,
        received: @escaping (DatagramExchange, Received) -> Void
    ) throws(SystemError) {
        (self.sent, self.isRepeat, self.scratch, self.loop) = (sent, isRepeat, scratch, loop)
        self.received = received
        socket = try QuerySocket.open(to: sent.server.endpoints[0])
        // A query that could not be sent for lack of room counts as lost: its deadline handles that.
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
