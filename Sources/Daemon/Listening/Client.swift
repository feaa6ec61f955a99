import Base
import Counters
import DNSWire
import Forwarding
import Transport

/// A client that waits for an answer: its query, and the way to send the reply.
struct Client: Sendable {
    let question: Question
    /// The query from its header to the end of its question, which the reply repeats.
    let query: [UInt8]
    let way: Way
    /// When the query came.
    let arrived: Tick
    /// Whether it is sure that this address has asked: it is this host's, has a connection, or has sent our cookie.
    let isProven: Bool

    enum Way: Sendable {
        case datagram(DatagramSocket, to: SocketAddress, from: IPAddress?)
        /// Takes the reply; may be called from any thread.
        case stream(from: IPAddress, over: Tally.Transport, @Sendable ([UInt8]) -> Void)
    }

    var address: IPAddress {
        switch way {
        case .datagram(_, let address, _): address.address
        case .stream(let address, _, _): address
        }
    }

    var transport: Tally.Transport { if case .stream(_, let transport, _) = way { transport } else { .udp } }

    /// The source that asks.
    var source: Source { Source(address) }

    init(_ question: Question, message: Span<UInt8>, way: Way, isProven: Bool = true, at now: Tick) {
        self.question = question
        arrived = now
        self.isProven = isProven
        query = unsafe message.withUnsafeBufferPointer { unsafe Array($0[..<question.end]) }
        self.way = way
    }
}

/// A question that a listener could not answer from the cache.
struct Miss: Sendable {
    let client: Client
    /// Whether the client has its answer, and only the entry is to be refreshed.
    var isRefresh = false
}
