import Base
import Counters
import DNSWire
import Transport

/// One UDP socket and the queue that reads it: hits are answered here, in batches; misses go to the resolver together.
final class DatagramListener: Sendable {
    let socket: DatagramSocket
    let tally: Tally
    private let reader: LingeringReader<QueryReceiver>

    /// - Parameter failed: the socket could not be read; it is tried again.
    init(
        _ socket: DatagramSocket, label: String, frontend: CurrentFrontend, forwarderLoop: ForwarderLoop,
        failed: @escaping @Sendable (SystemError) -> Void
    ) {
        self.socket = socket
        tally = Tally(.udp)
        reader = LingeringReader(
            socket, label: label, failed: failed,
            receiver: QueryReceiver(socket, CurrentFrontend.Copy(of: frontend), forwarderLoop, tally))
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
}

/// What a listener's queue does with the datagrams, and what it needs for that.
private struct QueryReceiver: DatagramReceiver, ~Copyable {
    private let socket: DatagramSocket
    private var frontend: CurrentFrontend.Copy
    private let forwarderLoop: ForwarderLoop
    private let tally: Tally
    /// Of the messages that take each step together: about as many as a core has cache lines under way at a time.
    private var reads = InlineArray<16, QueryFrontend.Read>(repeating: .nothing)
    /// Of the batch. Not a variable of its function: even an empty array would be counted there for each batch of hits.
    private var misses: [Miss] = []

    init(
        _ socket: DatagramSocket, _ frontend: consuming CurrentFrontend.Copy, _ forwarderLoop: ForwarderLoop,
        _ tally: Tally
    ) {
        self.socket = socket
        self.frontend = frontend
        self.forwarderLoop = forwarderLoop
        self.tally = tally
    }

    mutating func receive(_ batch: borrowing ReceiveBatch, _ replies: inout ReplyBatch) {
        frontend.update()
        let now = Tick(nanoseconds: Clock.now())
        var start = 0
        while start < batch.count {
            let end = min(start &+ reads.count, batch.count)
            read(batch, start..<end)
            for index in start..<end {
                let sender = batch.sender(index)
                // The bytes are valid until the next receive, which comes after this function.
                let message = unsafe batch.bytes(index).span
                var reply = unsafe replies.next().mutableSpan
                let outcome = frontend.current.receive(
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
        // A lone miss is asked upstream soonest by this thread itself; neither a reply nor further datagrams wait for
        // that.
        if !misses.isEmpty {
            forwarderLoop.submit(exchange(&misses, with: []), here: batch.count == 1 && replies.count == 0)
        }
        // One more look at the clock for all of them: a hit in a batch takes what the batch takes.
        if replies.count > 0 { tally.took(Clock.now() - now.nanoseconds, times: replies.count) }
    }

    /// The first two steps, for messages that take them together.
    private mutating func read(_ batch: borrowing ReceiveBatch, _ range: Range<Int>) {
        for index in range {
            reads[index &- range.lowerBound] = frontend.current.read(unsafe batch.bytes(index).span)
        }
        for step in 0..<range.count { frontend.current.prefetch(reads[step]) }
    }
}
