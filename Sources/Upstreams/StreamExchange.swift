import Base
import Transport

/// One query over TCP, on a connection of its own, for an answer that did not fit a datagram. Confined to its loop.
final class StreamExchange: EventHandler {
    let sent: SentQuery
    /// The server was silent, and this is the second time that it is asked.
    let isRepeat: Bool
    private let scratch: Scratch
    private let loop: EventLoop
    private var socket: StreamSocket
    private var registration: Registration?
    private var outgoing = StreamBuffer(limit: 1024)
    private var incoming: [UInt8] = []
    private var isConnected = false
    private let received: (StreamExchange, Received) -> Void

    /// What came of it; said once.
    enum Received {
        case message([UInt8])
        /// Why there is none.
        case failed(String)
    }

    init(
        _ sent: SentQuery, isRepeat: Bool, scratch: Scratch, loop: EventLoop,
        received: @escaping (StreamExchange, Received) -> Void
    ) throws(SystemError) {
        (self.sent, self.isRepeat, self.scratch, self.loop) = (sent, isRepeat, scratch, loop)
        self.received = received
        socket = try StreamSocket.connect(to: sent.server.endpoints[0])
        registration = try loop.register(socket.descriptor, .writable, self)
        let message = sent.bytes
        // A query has at most 12 + 255 + 4 + 11 octets.
        _ = outgoing.append([UInt8(message.count >> 8), UInt8(message.count & 0xFF)].span)
        _ = outgoing.append(message.span)
    }

    func ready(_ readiness: Readiness) {
        do throws(SystemError) {
            if !isConnected {
                try socket.connectResult()
                isConnected = true
            }
            if !outgoing.isEmpty, try outgoing.flush(to: socket), let registration {
                loop.update(registration, .readable)
            }
            if readiness.contains(.readable) { try receive() }
        } catch {
            received(self, .failed(error.description))
        }
    }

    private func receive() throws(SystemError) {
        switch try socket.receive(into: scratch) {
        case .wouldBlock: return
        case .endOfStream: received(self, .failed("closed by the server before it answered"))
        case .bytes(let count):
            unsafe incoming.append(contentsOf: scratch.first(count))
            guard incoming.count >= 2 else { return }
            let end = 2 + (Int(incoming[0]) << 8 | Int(incoming[1]))
            guard incoming.count >= end else { return }
            received(self, .message(Array(incoming[2..<end])))
        }
    }

    func close() {
        if let registration { loop.unregister(registration, closing: true) }
        registration = nil
        socket.close()
    }
}
