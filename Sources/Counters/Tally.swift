package import DNSWire
import Synchronization

/// What one listener, or the resolver, has counted of the questions and answers that went through it.
///
/// One queue writes, anybody reads: a count is a load and a store, neither of them locked, and a reader may be a query
/// behind. All memory is taken at once, so that counting allocates nothing.
@safe
package final class Tally: Sendable {
    /// What the questions came over.
    package let transport: Transport
    // Valid as long as the object; every index is checked by `add`.
    private nonisolated(unsafe) let slots: UnsafeMutablePointer<Atomic<UInt64>>

    package enum Transport: String {
        case udp, tcp
    }

    private static let responses = 2 * QuestionKind.count
    private static let durations = responses + ResponseKind.count
    private static let nanoseconds = durations + Durations.bucketCount
    private static let refreshes = nanoseconds + 1
    private static let slotCount = refreshes + 1

    package init(_ transport: Transport) {
        self.transport = transport
        unsafe slots = .allocate(capacity: Self.slotCount)
        for slot in 0..<Self.slotCount { unsafe (slots + slot).initialize(to: Atomic(0)) }
    }

    deinit {
        unsafe slots.deinitialize(count: Self.slotCount)
        unsafe slots.deallocate()
    }

    @inline(__always)
    private func add(_ amount: UInt64, to slot: Int) {
        precondition(UInt(bitPattern: slot) < UInt(Self.slotCount))
        // One queue alone writes: no other store can come between the two.
        let value = unsafe slots[slot].load(ordering: .relaxed)
        unsafe slots[slot].store(value &+ amount, ordering: .relaxed)
    }

    private func value(_ slot: Int) -> UInt64 {
        precondition(UInt(bitPattern: slot) < UInt(Self.slotCount))
        return unsafe slots[slot].load(ordering: .relaxed)
    }

    // MARK: The writer

    /// A question has come, or what was to be one.
    /// - Parameter type: nil when it could not be read so far.
    @inline(__always)
    package func asked(_ type: RecordType?, fromIPv4 isIPv4: Bool) {
        add(1, to: (isIPv4 ? 0 : QuestionKind.count) &+ QuestionKind.index(type))
    }

    @inline(__always)
    package func answered(_ code: ResponseCode) {
        add(1, to: Self.responses &+ ResponseKind.index(code))
    }

    /// A reply was written whose response code fits into a header, RFC 1035 §4.1.1.
    @inline(__always)
    package func answered(flags: UInt8) {
        add(1, to: Self.responses &+ Int(flags & 0x0F))
    }

    /// So many answers took so long each.
    @inline(__always)
    package func took(_ nanoseconds: UInt64, times: Int = 1) {
        let times = UInt64(times)
        add(times, to: Self.durations &+ Durations.bucket(nanoseconds))
        add(nanoseconds &* times, to: Self.nanoseconds)
    }

    /// An answer came from the cache, and its entry is refreshed.
    package func refreshed() { add(1, to: Self.refreshes) }

    // MARK: Readers

    package func asked(_ kind: Int, fromIPv4 isIPv4: Bool) -> UInt64 {
        value((isIPv4 ? 0 : QuestionKind.count) + kind)
    }

    package func answered(_ kind: Int) -> UInt64 { value(Self.responses + kind) }

    /// Of all types and families.
    package var asked: UInt64 { (0..<2 * QuestionKind.count).reduce(0) { $0 + value($1) } }

    /// Of all response codes.
    package var answered: UInt64 { (0..<ResponseKind.count).reduce(0) { $0 + answered($1) } }

    package var prefetches: UInt64 { value(Self.refreshes) }

    package func add(to durations: inout Durations) {
        for bucket in 0..<Durations.bucketCount { durations.counts[bucket] += value(Self.durations + bucket) }
        durations.nanoseconds += value(Self.nanoseconds)
    }
}

/// The types that questions are counted by: those that clients ask, and one place for all others.
package enum QuestionKind {
    package static let names = [
        "A", "AAAA", "HTTPS", "SVCB", "MX", "TXT", "PTR", "SRV", "NS", "SOA", "CNAME", "NAPTR", "CAA", "DS", "DNSKEY",
        "ANY", "other",
    ]
    package static let count = 17

    @inline(__always)
    package static func index(_ type: RecordType?) -> Int {
        // What nearly everybody asks, before the table that the others are looked up in.
        if let type, type.rawValue == 1 { return 0 }
        return rareIndex(type)
    }

    private static func rareIndex(_ type: RecordType?) -> Int {
        // By number: what other modules name is not always known to the compiler here, and this is on every query's
        // path.
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

/// The response codes that answers are counted by: those up to BADCOOKIE (23), and one place for all others.
package enum ResponseKind {
    package static let count = 25

    @inline(__always)
    package static func index(_ code: ResponseCode) -> Int { min(Int(code.rawValue), count &- 1) }

    package static func name(_ index: Int) -> String {
        index < count - 1 ? ResponseCode(rawValue: UInt16(index)).description : "other"
    }
}

/// How long something took how often: a histogram.
///
/// The upper bounds are CoreDNS's, 0.25 ms and its doubles up to 8.192 s, and four halvings below, where what the cache
/// answers lies.
package struct Durations: Sendable, Equatable {
    /// One for each upper bound, and one for what lies above them all.
    package static let bucketCount = 21
    private static let first: UInt64 = 15_625

    package var counts = [UInt64](repeating: 0, count: bucketCount)
    package var nanoseconds: UInt64 = 0

    package init() {}

    package var total: UInt64 { counts.reduce(0, +) }

    /// The bucket of the smallest bound that is not exceeded.
    @inline(__always)
    package static func bucket(_ nanoseconds: UInt64) -> Int {
        let steps = (max(nanoseconds, 1) &- 1) / first
        return min(UInt64.bitWidth &- steps.leadingZeroBitCount, bucketCount &- 1)
    }

    /// In nanoseconds; nil for the last bucket, which has none.
    package static func upperBound(_ bucket: Int) -> UInt64? {
        bucket < bucketCount - 1 ? first << UInt64(bucket) : nil
    }

    package mutating func add(_ nanoseconds: UInt64) {
        counts[Self.bucket(nanoseconds)] += 1
        self.nanoseconds += nanoseconds
    }

    package static func + (a: Durations, b: Durations) -> Durations {
        var sum = a
        for bucket in 0..<bucketCount { sum.counts[bucket] += b.counts[bucket] }
        sum.nanoseconds += b.nanoseconds
        return sum
    }

    /// The bound, in nanoseconds, that a share of all stayed within; nil without any, and for what lies above all
    /// bounds.
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
