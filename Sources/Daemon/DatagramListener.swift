import DNSCache
import DNSWire
import Transport

/// One UDP socket and the queue that reads it: hits are answered here, in batches; misses go to the resolver together.
final class DatagramListener: Sendable {
    let socket: DatagramSocket
    let tally: Tally
    private let reader: LingeringReader

    /// - Parameter failed: reading is over; once.
    init(
        _ socket: DatagramSocket, label: String, reception: CurrentReception, resolver: Resolver,
        failed: @escaping @Sendable (SystemError) -> Void
    ) {
        self.socket = socket
        let tally = Tally(.udp)
        self.tally = tally
        let reception = CurrentReception.Copy(of: reception)
        reader = LingeringReader(socket, label: label, failed: failed) { batch, replies in
            Self.receive(batch, &replies, socket, reception.latest(), resolver, tally)
        }
    }

    func start() throws(SystemError) {
        try reader.start()
    }

    func stop(_ stopped: @escaping @Sendable () -> Void) {
        reader.stop(stopped)
    }

    /// Calls `answer` on the listener's queue as soon as it turns.
    func ping(_ answer: @escaping @Sendable () -> Void) {
        reader.ping(answer)
    }

    /// Messages that take each step together: about as many as a core has cache lines under way at a time.
    private static let stepLength = 16
    private typealias Reads = InlineArray<16, Reception.Read>

    private static func receive(
        _ batch: borrowing ReceiveBatch, _ replies: inout ReplyBatch, _ socket: DatagramSocket, _ reception: Reception,
        _ resolver: Resolver, _ tally: Tally
    ) {
        let now = Tick(nanoseconds: Clock.now())
        var misses: [Miss] = []
        var start = 0
        while start < batch.count {
            let end = min(start &+ stepLength, batch.count)
            let memory = Reads { step in
                // The bytes are valid until the next receive, which comes after this function.
                start &+ step < end ? unsafe reception.read(batch.bytes(start &+ step).span) : .nothing
            }
            // By the array's own subscript the optimizer copies all of it each time.
            let reads = memory.span
            for index in start..<end { reception.prefetch(reads[index &- start]) }
            for index in start..<end {
                let message = unsafe batch.bytes(index).span
                let sender = batch.sender(index)
                var reply = unsafe replies.next().mutableSpan
                let outcome = reception.receive(
                    reads[index &- start], message, from: sender.address, at: now, limit: nil, tally: tally,
                    into: &reply)
                let miss: (question: Question, isRefresh: Bool)
                switch outcome {
                case .silence: continue
                case .reply(let length):
                    replies.commit(length, to: sender, from: batch.local(index))
                    continue
                case .replyAndRefresh(let length, let question):
                    replies.commit(length, to: sender, from: batch.local(index))
                    miss = (question, true)
                case .ask(let question): miss = (question, false)
                }
                let client = Client(
                    miss.question, message: message, way: .datagram(socket, to: sender, from: batch.local(index)),
                    at: now)
                misses.append(Miss(client: client, isRefresh: miss.isRefresh))
            }
            start = end
        }
        // A lone miss is asked upstream soonest by this thread itself; neither a reply nor further datagrams wait for that.
        if !misses.isEmpty { resolver.submit(misses, here: batch.count == 1 && replies.count == 0) }
        // One more look at the clock for all of them: a hit in a batch takes what the batch takes.
        if replies.count > 0 { tally.took(Clock.now() - now.nanoseconds, times: replies.count) }
    }
}
