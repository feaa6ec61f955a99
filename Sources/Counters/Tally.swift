package import Base
package import DNSWire
import Synchronization

/// The counts of one listener, or of the forwarder's loop: questions, answers, and each ``Counted``.
///
/// One queue writes, any thread reads: a count is a load and a store, neither of them locked, and a reader may be a
/// query behind. All memory is allocated at once, so that counting allocates nothing.
@safe
package final class Tally: Sendable {
    /// The transport of the questions.
    package let transport: Transport
    // The memory is valid as long as the object; `add` checks each index.
    private nonisolated(unsafe) let slots: UnsafeMutablePointer<Atomic<UInt64>>

    package typealias Transport = ClientWay

    private static let responses = 2 * QuestionKind.count
    private static let durations = responses + ResponseKind.count
    private static let nanoseconds = durations + Durations.bucketCount
    private static let events = nanoseconds + 1
    /// More than enough for each ``Counted``. A constant, since each count compares its index with it.
    private static let slotCount = 128
    private static let cacheLine = 64

    /// All counts are 0.
    /// - Parameter transport: The transport of the questions.
    package init(_ transport: Transport) {
        self.transport = transport
        // The counts fill cache lines of their own: two listeners count at the same time.
        unsafe slots = UnsafeMutableRawPointer.allocate(
            byteCount: Self.slotCount * MemoryLayout<Atomic<UInt64>>.stride, alignment: Self.cacheLine
        ).bindMemory(to: Atomic<UInt64>.self, capacity: Self.slotCount)
        for slot in 0..<Self.slotCount { unsafe (slots + slot).initialize(to: Atomic(0)) }
    }

    deinit {
        unsafe slots.deinitialize(count: Self.slotCount)
        unsafe slots.deallocate()
    }

    @inline(__always)
    private func add(_ amount: UInt64, to slot: Int) {
        precondition(UInt(bitPattern: slot) < UInt(Self.slotCount))
        // Only one queue writes, so no other store can come between the two.
        let value = unsafe slots[slot].load(ordering: .relaxed)
        unsafe slots[slot].store(value &+ amount, ordering: .relaxed)
    }

    private func value(_ slot: Int) -> UInt64 {
        precondition(UInt(bitPattern: slot) < UInt(Self.slotCount))
        return unsafe slots[slot].load(ordering: .relaxed)
    }

    // MARK: The writer

    /// Counts a question, or a message that should be one.
    /// - Parameter type: The type of the question; nil if the message could not be parsed that far.
    @inline(__always)
    package func asked(_ type: RecordType?, fromIPv4 isIPv4: Bool) {
        add(1, to: (isIPv4 ? 0 : QuestionKind.count) &+ QuestionKind.index(type))
    }

    /// Counts a reply by its whole response code (RFC 6891 §6.1.3).
    @inline(__always)
    package func answered(_ code: ResponseCode) { add(1, to: Self.responses &+ ResponseKind.index(code)) }

    /// Counts a reply by a response code that fits into a header (RFC 1035 §4.1.1).
    @inline(__always)
    package func answered(flags: UInt8) { add(1, to: Self.responses &+ Int(flags & 0x0F)) }

    /// Counts answers that each took this duration.
    @inline(__always)
    package func took(_ nanoseconds: UInt64, times: Int = 1) {
        let times = UInt64(times)
        add(times, to: Self.durations &+ Durations.bucket(nanoseconds))
        add(nanoseconds &* times, to: Self.nanoseconds)
    }

    /// Counts an event.
    package func count(_ event: Counted) { add(1, to: Self.events &+ event.rawValue) }

    /// Sets a number that falls as well.
    package func set(_ number: Counted, to amount: Int) {
        let slot = Self.events &+ number.rawValue
        add(UInt64(amount) &- value(slot), to: slot)
    }

    // MARK: Readers

    /// How often an event was counted since the start, or a number that falls as well.
    package subscript(event: Counted) -> UInt64 { value(Self.events + event.rawValue) }

    /// Answers of all response codes since the start.
    package var answered: UInt64 { Counts(of: [self]).responses.reduce(0, +) }

    /// The counts of some tallies since the start, added up.
    package struct Counts: Sendable {
        private var slots = [UInt64](repeating: 0, count: Tally.slotCount)

        package init(of tallies: [Tally] = []) {
            for tally in tallies { for slot in slots.indices { slots[slot] &+= tally.value(slot) } }
        }

        /// Questions by ``QuestionKind``, from clients of one IP version.
        package func questions(fromIPv4 isIPv4: Bool) -> [UInt64] {
            Array(slots.dropFirst(isIPv4 ? 0 : QuestionKind.count).prefix(QuestionKind.count))
        }

        /// All questions.
        package var asked: UInt64 { slots[..<Tally.responses].reduce(0, +) }

        /// Answers by ``ResponseKind``.
        package var responses: [UInt64] { Array(slots[Tally.responses..<Tally.durations]) }

        /// The durations of the answers.
        package var durations: Durations {
            var durations = Durations()
            durations.counts = Array(slots[Tally.durations..<Tally.nanoseconds])
            durations.nanoseconds = slots[Tally.nanoseconds]
            return durations
        }

        package subscript(event: Counted) -> UInt64 { slots[Tally.events + event.rawValue] }
    }
}

/// The kinds of types in counts: each common type, and all others together.
package enum QuestionKind {
    /// The names of the types in metrics, by index.
    package static let names = [
        "A", "AAAA", "HTTPS", "SVCB", "MX", "TXT", "PTR", "SRV", "NS", "SOA", "CNAME", "NAPTR", "CAA", "DS", "DNSKEY",
        "ANY", "other",
    ]
    /// The number of kinds.
    package static let count = 17

    /// The index of a type.
    /// - Parameter type: The type of the question; nil if it could not be read.
    @inline(__always)
    package static func index(_ type: RecordType?) -> Int {
        // The most frequent type is checked before the table of the other types.
        if let type, type.rawValue == 1 { return 0 }
        return rareIndex(type)
    }

    private static func rareIndex(_ type: RecordType?) -> Int {
        // By number: the compiler does not always see the constants of other modules, and this runs for each query.
        switch type?.rawValue {
        case 28: 1
        case 65: 2
        case 64: 3
        case 15: 4
        case 16: 5
        case 12: 6
        case 33: 7
        case 2: 8
        case 6: 9
        case 5: 10
        case 35: 11
        case 257: 12
        case 43: 13
        case 48: 14
        case 255: 15
        default: 16
        }
    }
}

/// The kinds of response codes in counts: those up to BADCOOKIE (23), and all others together.
package enum ResponseKind {
    /// The number of kinds.
    package static let count = 25

    /// The index of a response code.
    @inline(__always)
    package static func index(_ code: ResponseCode) -> Int { min(Int(code.rawValue), count &- 1) }

    /// The name of the code with an index, for metrics; `other` for the last.
    package static func name(_ index: Int) -> String {
        index < count - 1 ? ResponseCode(rawValue: UInt16(index)).description : "other"
    }
}

/// A histogram of durations.
///
/// The upper bounds are CoreDNS's, 0.25 ms and its doubles up to 8.192 s, and four halvings below, for answers from the
/// cache.
package struct Durations: Sendable, Equatable {
    /// One bucket for each upper bound, and one bucket for longer durations.
    package static let bucketCount = 21
    private static let first: UInt64 = 15_625

    /// The number of durations in each bucket.
    package var counts = [UInt64](repeating: 0, count: bucketCount)
    /// The sum of all durations. It begins again at 0 past its range, which a daemon with many clients that wait may
    /// reach within weeks.
    package var nanoseconds: UInt64 = 0

    /// An empty histogram.
    package init() {}

    /// The number of durations.
    package var total: UInt64 { counts.reduce(0, +) }

    /// The bucket of the smallest bound that is not exceeded.
    @inline(__always)
    package static func bucket(_ nanoseconds: UInt64) -> Int {
        let steps = (max(nanoseconds, 1) &- 1) / first
        return min(UInt64.bitWidth &- steps.leadingZeroBitCount, bucketCount &- 1)
    }

    /// The bucket's upper bound in nanoseconds; nil: the last bucket has no bound.
    package static func upperBound(_ bucket: Int) -> UInt64? {
        bucket < bucketCount - 1 ? first << UInt64(bucket) : nil
    }

    /// Counts one duration.
    package mutating func add(_ nanoseconds: UInt64) {
        counts[Self.bucket(nanoseconds)] += 1
        self.nanoseconds &+= nanoseconds
    }

    /// The sum of two histograms.
    package static func + (a: Durations, b: Durations) -> Durations {
        var sum = a
        for bucket in 0..<bucketCount { sum.counts[bucket] += b.counts[bucket] }
        sum.nanoseconds &+= b.nanoseconds
        return sum
    }

    /// The smallest bound, in nanoseconds, that this share (0…1) of all durations did not exceed; nil if there are no
    /// durations, or if the share is above all bounds.
    package func bound(ofShare share: Double) -> UInt64? {
        let wanted = Double(total) * share
        guard wanted > 0 else { return nil }
        var sum: UInt64 = 0
        for (bucket, count) in counts.enumerated() {
            sum += count
            if Double(sum) >= wanted { return Self.upperBound(bucket) }
        }
        return nil
    }
}
