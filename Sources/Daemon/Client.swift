import Addresses
import DNSCache
import DNSWire
import Transport

/// Somebody who waits for an answer: what was asked, in the very bytes, and the way back.
struct Client: Sendable {
    let question: Question
    /// The query from its header to the end of its question: what a reply repeats.
    let query: [UInt8]
    let way: Way
    /// When it came.
    let arrived: Tick

    enum Way: Sendable {
        case datagram(DatagramSocket, to: SocketAddress, from: IPAddress?)
        case stream(StreamClient)
    }

    init(_ question: Question, message: Span<UInt8>, way: Way, at now: Tick) {
        self.question = question
        arrived = now
        query = unsafe message.withUnsafeBufferPointer { unsafe Array($0[..<question.end]) }
        self.way = way
    }
}

/// A question that its listener could not answer from the cache.
struct Miss: Sendable {
    let client: Client
    /// The client has its answer; the entry is to be refreshed.
    var isRefresh = false
}
