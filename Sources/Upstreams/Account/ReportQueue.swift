import Base

/// The reports that wait to be sent, and the time of the next batch; without sockets.
///
/// One batch is under way at a time. Reports that the server does not accept stay and are sent again after a pause that
/// doubles; beyond the limit the oldest reports are dropped for the newest.
struct ReportQueue {
    /// The most waiting octets: some thousand reports.
    static let limit = 512 * 1024
    /// The most octets of a batch, unless a single report is longer. With the head of a request a batch is shorter than
    /// the octets that may wait in a TLS session for its handshake.
    static let batchSize = 48 * 1024
    /// Milliseconds in which reports are gathered before a batch is sent, unless it is full.
    static let gatherTime = 5000
    /// Milliseconds after which a batch under way is given up.
    static let attemptTime = 5000
    /// The pause after the first failure, and the longest pause, in milliseconds.
    static let (firstPause, longestPause) = (5000, 5 * 60_000)

    /// The end of a batch under way.
    enum BatchEnd {
        case accepted
        /// The server will never accept the batch.
        case refused
        case failed
    }

    /// Reports lost since the start.
    private(set) var dropped: UInt64 = 0
    /// Failures since the last accepted batch.
    private(set) var failures = 0
    private var waiting: [[UInt8]] = []
    private var waitingSize = 0
    private var batch: [[UInt8]] = []
    /// When the next batch is sent or the batch under way is given up; nil if no report waits.
    private(set) var nextDeadline: Tick?
    private var notBefore: Tick?

    var isSending: Bool { !batch.isEmpty }

    /// - Parameter report: One line, without its end.
    mutating func add(_ report: [UInt8], at now: Tick) {
        waiting.append(report)
        waitingSize += report.count + 1
        dropOldest()
        schedule(at: now)
    }

    /// The next batch, a line for each report; nil if it is too early for a batch, or a batch is under way.
    mutating func nextBatch(at now: Tick) -> [UInt8]? {
        guard !isSending, let nextDeadline, nextDeadline <= now else { return nil }
        var (count, size) = (0, 0)
        while count < waiting.count, count == 0 || size + waiting[count].count + 1 <= Self.batchSize {
            size += waiting[count].count + 1
            count += 1
        }
        batch = Array(waiting[..<count])
        waiting.removeFirst(count)
        waitingSize -= size
        self.nextDeadline = now.advanced(milliseconds: Self.attemptTime)
        return batch.flatMap { $0 + [UInt8(ascii: "\n")] }
    }

    /// The batch under way has ended.
    mutating func settle(_ end: BatchEnd, at now: Tick) {
        switch end {
        case .accepted: failures = 0
        case .refused:
            dropped += UInt64(batch.count)
            failures += 1
        case .failed:
            waiting = batch + waiting
            waitingSize += batch.reduce(0) { $0 + $1.count + 1 }
            failures += 1
        }
        batch = []
        dropOldest()
        notBefore = failures > 0 ? now.advanced(milliseconds: Self.pause(after: failures)) : nil
        nextDeadline = nil
        schedule(at: now)
    }

    private mutating func dropOldest() {
        while waitingSize > Self.limit, waiting.count > 1 {
            waitingSize -= waiting.removeFirst().count + 1
            dropped += 1
        }
    }

    private mutating func schedule(at now: Tick) {
        guard !isSending, !waiting.isEmpty else { return }
        let gathered = waitingSize >= Self.batchSize ? now : now.advanced(milliseconds: Self.gatherTime)
        nextDeadline = max(notBefore ?? now, min(nextDeadline ?? gathered, gathered))
    }

    private static func pause(after failures: Int) -> Int {
        min(longestPause, firstPause << min(failures - 1, 16))
    }
}
