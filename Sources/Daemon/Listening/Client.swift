import Base
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
    let asker: Asker

    enum Way: Sendable {
        case datagram(DatagramSocket, to: SocketAddress, from: LocalAddress?)
        /// Takes the answer, whose reply is written when it is sent: each written reply that waits takes up to 64 KiB. May
        /// be called from any thread.
        case stream(@Sendable (Client, Answer, Reply.Age) -> Void)
    }

    init(_ question: Question, message: Span<UInt8>, of asker: Asker, way: Way, at now: Tick) {
        (self.question, self.asker, self.way, arrived) = (question, asker, way, now)
        query = unsafe message.withUnsafeBufferPointer { unsafe Array($0[..<question.end]) }
    }
}

/// A question that a listener could not answer from the cache.
struct Miss: Sendable {
    let client: Client
    /// Whether the client has its answer, and only the entry is to be refreshed.
    var isRefresh = false
}

/// The waiting clients, by their numbers in the forwarder; a number is reused after its client was answered.
struct WaitingClients {
    private var clients: [Client?] = []
    private var free: [ClientNumber] = []

    mutating func insert(_ client: Client) -> ClientNumber {
        guard let number = free.popLast() else {
            clients.append(client)
            return clients.count - 1
        }
        clients[number] = client
        return number
    }

    /// - Precondition: The number is in use.
    mutating func remove(_ number: ClientNumber) -> Client {
        guard let client = clients[number].take() else { preconditionFailure("a client is answered once") }
        free.append(number)
        return client
    }
}
