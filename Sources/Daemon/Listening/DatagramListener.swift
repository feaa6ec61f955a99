import Base
import Counters
import DNSWire
import Transport

/// One UDP socket and the queue that reads it: hits are answered here, in batches; misses go to the forwarder's loop
/// together.
final class DatagramListener: Sendable {
    let notes = WatchNotes()
    let reader: LingeringReader<QueryReceiver>
    private let tally = Tally(.udp)
    private let loopReader: LoopReader

    /// A listener, before the forwarder's loop starts.
    /// - Parameter failed: Called when the socket could not be read; it is tried again.
    init(
        _ socket: DatagramSocket, label: String, forwarderLoop: ForwarderLoop,
        failed: @escaping @Sendable (SystemError) -> Void
    ) {
        let loopReader = LoopReader(socket, forwarderLoop)
        self.loopReader = loopReader
        reader = LingeringReader(
            socket, label: label, failed: failed, isInTheWay: { loopReader.findsListenerInTheWay() },
            receiver: QueryReceiver(socket, forwarderLoop, tally, notes))
        forwarderLoop.loop.waiters.append(reader)
    }

    /// The counts of the listener's own queue, and of the loop when it reads instead.
    var tallies: [Tally] { [tally, loopReader.tally] }
}

/// Handles a listener's datagrams, on one thread.
struct QueryReceiver: DatagramReceiver, ~Copyable {
    private let socket: DatagramSocket
    private var frontend: CurrentFrontend.Copy
    private let forwarderLoop: ForwarderLoop
    private let tally: Tally
    private let notes: WatchNotes
    /// The number of messages for each step: about as many as a core can have cache misses under way.
    private var reads = InlineArray<16, QueryFrontend.Read>(repeating: .nothing)
    /// The misses of the batch. A property, because as a local variable even an empty array would cost reference
    /// counting for each batch of hits.
    private var misses: [Miss] = []

    init(
        _ socket: DatagramSocket, _ forwarderLoop: ForwarderLoop, _ tally: Tally, _ notes: WatchNotes
    ) {
        self.socket = socket
        frontend = CurrentFrontend.Copy(of: forwarderLoop.frontend)
        self.forwarderLoop = forwarderLoop
        self.tally = tally
        self.notes = notes
    }

    mutating func receive(_ batch: borrowing ReceiveBatch, _ replies: inout SendBatch) {
        frontend.update()
        let now = Tick(nanoseconds: Clock.now())
        var start = 0
        while start < batch.count {
            let end = min(start &+ reads.count, batch.count)
            read(batch, start..<end)
            for index in start..<end {
                let sender = batch.sender(index)
                // The bytes are valid until the next receive, which comes after this function returns.
                let message = unsafe batch.bytes(index).span
                var reply = unsafe replies.next().mutableSpan
                let outcome = frontend.current.receive(
                    reads[index &- start], message, from: sender.address, at: now, limit: nil, tally: tally,
                    into: &reply)
                let miss: (question: Question, isProven: Bool, isRefresh: Bool)
                switch outcome {
                case .silence: continue
                case .reply(let length):
                    replies.commit(length, to: sender, from: batch.local(index))
                    continue
                case .replyAndRefresh(let length, let question):
                    replies.commit(length, to: sender, from: batch.local(index))
                    miss = (question, true, true)
                case .ask(let question, let isProven): miss = (question, isProven, false)
                }
                let client = Client(
                    miss.question, message: message,
                    of: frontend.asker(sender.address, over: .udp, isProven: miss.isProven),
                    way: .datagram(socket, to: sender, from: batch.local(index)), at: now)
                if misses.isEmpty { misses.reserveCapacity(batch.count &- index) }
                misses.append(Miss(client: client, isRefresh: miss.isRefresh))
            }
            start = end
        }
        // If the batch was one question, it goes upstream soonest if this thread itself sends it.
        if !misses.isEmpty {
            forwarderLoop.submit(exchange(&misses, with: []), here: batch.count == 1 && replies.count == 0)
        }
        // The clock is read once for the whole batch: each hit counts with the time of its batch.
        guard replies.count > 0 else { return }
        let took = Clock.now() - now.nanoseconds
        tally.took(took, times: replies.count)
        if notes.isWatched {
            let time = WallClock.unixMicroseconds()
            notes.note(replies.count) { page in
                for index in 0..<replies.count {
                    page.add(
                        unsafe replies.bytes(index).span, to: replies.receiver(index).address, over: .udp,
                        at: time, took: took)
                }
            }
        }
    }

    /// The first two steps for a group of messages.
    private mutating func read(_ batch: borrowing ReceiveBatch, _ range: Range<Int>) {
        for index in range {
            reads[index &- range.lowerBound] = frontend.current.read(unsafe batch.bytes(index).span)
        }
        for step in 0..<range.count { frontend.current.prefetch(reads[step]) }
    }
}
