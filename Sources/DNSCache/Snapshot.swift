import Base
import DNSWire
import Synchronization

/// The format of answers outside the process: network byte order, no gaps.
///
/// - Header: magic number, version, time of writing (``DNSCache/Moment``), its checksum.
/// - Blocks: octets of the records, number of records, number in the sequence, checksum over these and the records. The
///   checksums continue the header's, so that no block can be taken for a block of another snapshot.
/// - A block without records ends the snapshot.
///
/// A record is an ``Entry`` without the fields that are valid only in this process, its age in seconds, and the body.
enum Snapshot {
    static let magic = Array("httpdnsd".utf8)
    static let version: UInt32 = 6
    static let headerLength = 44
    static let blockHeaderLength = 16
    static let recordHeaderLength = 24
    /// A block is closed when its records have this many octets: large enough to be cheap, small enough for memory.
    static let blockTarget = 1 << 16
    /// Octets of a ring that are walked at once under its lock: about 5 µs.
    static let slice = 1 << 12
    /// The most octets of a block's records: the target less one, a slice, and a record that begins at its end.
    static let largestBlock = blockTarget + slice + recordHeaderLength + Int(UInt16.max)
    /// Older answers are not restored, whatever their TTL: beyond twice this age, ages could not be computed (see
    /// ``Entry/elapsed(at:)``). In seconds, 34 years.
    static let maximumAge: UInt64 = 1 << 30

    static func header(_ written: DNSCache.Moment) -> [UInt8] {
        var bytes = magic
        bytes.append32(version)
        bytes.append32(written.tick)
        let boot = written.boot ?? 0
        for number in [written.wall, UInt64(boot >> 64), UInt64(truncatingIfNeeded: boot)] {
            bytes.append(number, octets: 8)
        }
        bytes.append32(headerChecksum(bytes.span))
        return bytes
    }

    static func headerChecksum(_ header: Span<UInt8>) -> UInt32 { Checksum.of(header, 0..<headerLength - 4) }

    static func blockChecksum(_ block: Span<UInt8>, after headerChecksum: UInt32) -> UInt32 {
        let fields = Checksum.of(block, 0..<blockHeaderLength - 4, after: headerChecksum)
        return Checksum.of(block, blockHeaderLength..<block.count, after: fields)
    }
}

extension DNSCache {
    /// The time by two clocks, since neither alone suffices for a file: the wall clock may be set, and the monotonic
    /// clock restarts with the machine.
    public struct Moment: Sendable, Equatable {
        /// Seconds since 1970.
        public var wall: UInt64
        /// ``Tick/seconds``.
        public var tick: UInt32
        /// Identifies the start of the machine from which `tick` counts; nil if unknown.
        public var boot: UInt128?
        /// Whether `wall` goes on while the machine is off. Without a hardware clock it begins at the time of the last
        /// stop.
        public var countsWhileOff: Bool

        /// - Parameters: Each parameter sets the property of the same name.
        public init(wall: UInt64, tick: UInt32, boot: UInt128? = nil, countsWhileOff: Bool = true) {
            (self.wall, self.tick, self.boot, self.countsWhileOff) = (wall, tick, boot, countsWhileOff)
        }

        /// Seconds from then until now; nil if unknown, since a clock went back or stood still.
        public func elapsed(since then: Moment) -> UInt64? {
            if let boot, boot == then.boot, tick >= then.tick { return UInt64(tick - then.tick) }
            if let boot, let before = then.boot, boot != before, !countsWhileOff { return nil }
            return wall >= then.wall ? wall - then.wall : nil
        }
    }

    /// A count of stored and removed answers: a snapshot is outdated if the count differs from its value before.
    /// Restoring a snapshot does not count, except an answer left out since it was removed meanwhile.
    public var changes: UInt64 {
        var sum: UInt64 = 0
        for index in 0..<Self.segmentCount { sum &+= UInt64(unsafe segments[index].withLock { $0.changes }) }
        return sum
    }

    /// Passes on all answers that can still be given, oldest first, in parts to be written in sequence, each of some
    /// hundred KiB at most. Answers stored meanwhile may be missing. A query never waits longer than the copying of
    /// some dozens of answers takes.
    public func writeSnapshot<Failure: Error>(
        at now: Moment, _ write: ([UInt8]) throws(Failure) -> Void
    ) throws(Failure) {
        let header = Snapshot.header(now)
        try write(header)
        var block = SnapshotBlock(after: Snapshot.headerChecksum(header.span))
        var positions = [Int](repeating: 0, count: Self.segmentCount)
        var ends: [Int] = []
        for index in 0..<Self.segmentCount { ends.append(unsafe segments[index].withLock { $0.ring.end }) }
        // The segments take turns, so that the oldest answers of all segments come first: a restoration with less room
        // leaves the oldest answers out.
        while !zip(positions, ends).allSatisfy({ $0 >= $1 }) {
            for index in 0..<Self.segmentCount where positions[index] < ends[index] {
                unsafe segments[index].withLock { segment in
                    segment.copy(&positions[index], before: ends[index], at: now.tick, to: &block)
                }
                if block.isFull {
                    try write(block.sealed())
                    block.begin()
                }
            }
        }
        if !block.isEmpty {
            try write(block.sealed())
            block.begin()
        }
        try write(block.sealed())
    }
}

/// The block of a snapshot that is being filled.
struct SnapshotBlock {
    private var bytes: [UInt8]
    private var records: UInt32 = 0
    private var sequence: UInt32 = 0
    private let headerChecksum: UInt32

    init(after headerChecksum: UInt32) {
        self.headerChecksum = headerChecksum
        bytes = [UInt8](repeating: 0, count: Snapshot.blockHeaderLength)
        bytes.reserveCapacity(Snapshot.blockHeaderLength + Snapshot.largestBlock)
    }

    var isEmpty: Bool { records == 0 }
    var isFull: Bool { bytes.count >= Snapshot.blockHeaderLength + Snapshot.blockTarget }

    mutating func append(_ entry: Entry, age: UInt32, body: UnsafeBufferPointer<UInt8>) {
        records += 1
        entry.appendRecord(age: age, to: &bytes)
        unsafe bytes.append(contentsOf: body)
    }

    /// The whole block, with its length, count and checksum.
    mutating func sealed() -> [UInt8] {
        let (records, sequence, headerChecksum) = (records, sequence, headerChecksum)
        var block = bytes.mutableSpan
        block.write(UInt32(block.count - Snapshot.blockHeaderLength), at: 0)
        block.write(records, at: 4)
        block.write(sequence, at: 8)
        block.write(Snapshot.blockChecksum(block.span, after: headerChecksum), at: 12)
        return bytes
    }

    /// Begins the next block of the sequence.
    mutating func begin() {
        bytes.removeLast(bytes.count - Snapshot.blockHeaderLength)
        records = 0
        sequence += 1
    }
}

extension Segment {
    /// Copies the answers of one slice of the ring that may still be given, and moves `position` past it.
    func copy(_ position: inout Int, before end: Int, at now: UInt32, to block: inout SnapshotBlock) {
        position = max(position, ring.start)
        let sliceEnd = min(end, position + Snapshot.slice)
        while let offset = ring.nextOffset(&position, before: sliceEnd) {
            let entry = ring.entry(at: offset)
            guard isUsable(entry, at: now), !entry.isStandIn else { continue }
            // The body is copied at once, under the lock.
            unsafe block.append(
                entry, age: entry.elapsed(at: now), body: ring.body(at: offset, length: Int(entry.bodyLength)))
        }
    }
}

extension Entry {
    /// Writes a record. It leaves out position, hash and name length, which are found again; the epoch, which belongs
    /// to this process; and the mark of a substitute, which is never stored.
    func appendRecord(age: UInt32, to bytes: inout [UInt8]) {
        bytes.append32(age)
        bytes.append32(keep)
        bytes.append16(bodyLength)
        bytes.append(flags.intersection(.kept).rawValue)
        bytes.append(responseCode)
        bytes.append16(answerCount)
        bytes.append16(authorityCount)
        bytes.append16(additionalCount)
        bytes.append16(extendedErrorLength)
        bytes.append32(basis)
    }
}

extension Entry.Flags {
    /// The flags that are valid for another process.
    static let kept = Entry.Flags.audience.union(.authenticData)
}

/// A checksum of 32 bits: a changed file has the same checksum once in four thousand million times.
///
/// It takes eight octets a step, by the folded multiplication of ``NameHash``: 60 instructions less for each eight
/// octets than a CRC by tables. Its keys are public, so it does not prevent forgery.
enum Checksum {
    /// Digits of π.
    private static let keys: (UInt64, UInt64) = (0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7344)

    /// - Parameter earlier: The checksum of the octets before this range.
    static func of(_ bytes: Span<UInt8>, _ range: Range<Int>, after earlier: UInt32 = 0) -> UInt32 {
        var sum = UInt64(earlier) << 32 | UInt64(range.count)
        var at = range.lowerBound
        while range.upperBound &- at >= 8 {
            sum = folded(eightOctets(bytes, at: at) ^ keys.0, sum ^ keys.1)
            at &+= 8
        }
        sum = folded(fewOctets(bytes, at..<range.upperBound) ^ keys.0, sum ^ keys.1)
        return UInt32(truncatingIfNeeded: sum)
    }
}
