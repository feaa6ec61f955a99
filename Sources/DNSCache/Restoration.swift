import DNSWire
import Synchronization

/// Why a snapshot was not restored, or only in part.
public enum SnapshotError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The file does not begin with a snapshot's magic number.
    case foreign
    /// Another version of the daemon has written the file.
    case version(UInt32)
    /// The file ends early.
    case truncated
    /// A checksum, a length or a count is wrong in the block at this offset (0: the header).
    case damaged(at: Int)
    /// The file could not be read.
    case unreadable

    /// Text to follow the name of the file.
    public var description: String {
        switch self {
        case .foreign: "it is something else"
        case .version(let version): "it is of version \(version), not \(Snapshot.version)"
        case .truncated: "it ends early"
        case .damaged(let offset): "it is damaged at octet \(offset)"
        case .unreadable: "it cannot be read"
        }
    }
}

extension DNSCache {
    /// Restores the answers of a snapshot that can still be given, as far as there is free space: no entry is evicted
    /// for them, and answers stored meanwhile stay. Their ages go on; if the elapsed time is unknown, all answers count
    /// as expired.
    ///
    /// The snapshot is read once, block by block, up to the first damaged block. The call is safe while other threads
    /// ask and store.
    ///
    /// Each answer is compared with the rules in force when it is stored, so that a restoration undoes no later change
    /// of the rules, and no ``remove(_:)``.
    ///
    /// - Parameters:
    ///   - length: Octets of the snapshot.
    ///   - read: Returns exactly the octets in a range within `0..<length`; nil if they cannot be read.
    /// - Returns: The number of restored answers, the number of answers left out since they are no longer right, and
    ///   why the snapshot was not read to its end; nil if it was.
    public func restoreSnapshot(
        length: Int, at now: Moment, read: (Range<Int>) -> [UInt8]?
    ) -> (answers: Int, others: Int, fault: SnapshotError?) {
        var (taken, others) = (0, 0)
        do throws(SnapshotError) {
            var reader = try SnapshotReader(length: length, read)
            let elapsed = now.elapsed(since: reader.written)
            var room = 0
            for index in 0..<Self.segmentCount { room += unsafe segments[index].withLock { $0.ring.freeBytes } }
            while let block = try reader.next(read) {
                // Of a snapshot larger than the cache only the last blocks are used, which have the newest answers. The
                // rest grows in the ring by about the same factor as this block.
                let expansion = Double(block.extent) / Double(block.bytes.count)
                guard Double(reader.remaining) * expansion < Double(room) else { continue }
                room -= block.extent
                let counts = restore(block.bytes, elapsed: elapsed, at: now.tick)
                (taken, others) = (taken + counts.answers, others + counts.others)
            }
            return (taken, others, nil)
        } catch {
            return (taken, others, error)
        }
    }

    /// - Parameter block: A block whose lengths and count of records were checked.
    private func restore(_ block: [UInt8], elapsed: UInt64?, at now: UInt32) -> (answers: Int, others: Int) {
        let bytes = block.span
        var (taken, others) = (0, 0)
        var records: [Record] = []
        records.reserveCapacity(Int(bytes.integer32(at: 4)))
        var offset = Snapshot.blockHeaderLength
        while offset < bytes.count {
            let start = offset
            offset += Snapshot.recordHeaderLength + Int(bytes.integer16(at: start + 8))
            guard let record = record(bytes, start..<offset, elapsed: elapsed, at: now) else { continue }
            // The answers go to random positions in memory, and to wait for each would be nearly half of the work. So
            // the positions for a block are all fetched while its records are checked: first each bucket in the index,
            // then the entry that is there already.
            maps[Self.segment(record.hash)].prefetchBucket(of: record.hash)
            records.append(record)
        }
        for record in records { maps[Self.segment(record.hash)].prefetchEntry(of: record.hash) }
        for record in records {
            let result = unsafe segments[Self.segment(record.hash)].withLock { segment in
                segment.restore(
                    record.entry, hash: record.hash, body: bytes.extracting(record.body), age: record.age, forgotten)
            }
            switch result {
            case .taken: taken += 1
            case .isOther: others += 1
            case .leftOut: break
            }
        }
        return (taken, others)
    }

    /// A record that may be restored; nil if the cache could not have written it.
    ///
    /// - Parameter range: The whole record, its fixed part and its body.
    private func record(
        _ bytes: Span<UInt8>, _ range: Range<Int>, elapsed: UInt64?, at now: UInt32
    ) -> Record? {
        let body = range.lowerBound + Snapshot.recordHeaderLength..<range.upperBound
        // The fixed part of a record is longer than a message header, so 12 octets precede the body, like a message's
        // header.
        let message = bytes.extracting(body.lowerBound - 12..<body.upperBound)
        guard var entry = Entry(record: bytes, at: range.lowerBound),
            let question = try? StoredAnswer.check(message, entry.head)
        else { return nil }
        let age = UInt64(bytes.integer32(at: range.lowerBound))
        let newAge = elapsed.map { age + min($0, UInt64(UInt32.max)) } ?? max(age, UInt64(entry.keep))
        guard newAge <= Snapshot.maximumAge else { return nil }
        let name = body.lowerBound..<body.lowerBound + question.nameLength
        let hash = hash(bytes, name: name, type: question.type.rawValue)
        entry.nameLength = UInt8(question.nameLength)
        entry.hash = Ring.tag(hash)
        entry.stored = now &- UInt32(newAge)
        return Record(entry: entry, body: body, hash: hash, age: newAge)
    }
}

/// A checked record of a snapshot.
private struct Record {
    let entry: Entry
    /// The range of the record's body in the block.
    let body: Range<Int>
    let hash: UInt64
    /// Seconds since the answer was stored.
    let age: UInt64
}

extension Entry {
    /// The part of an entry that a record contains; nil if no valid entry can have these values.
    ///
    /// - Parameter bytes: Octets that contain the record's fixed part from `offset` on.
    fileprivate init?(record bytes: Span<UInt8>, at offset: Int) {
        self.init()
        keep = bytes.integer32(at: offset + 4)
        bodyLength = bytes.integer16(at: offset + 8)
        flags = Flags(rawValue: bytes[offset + 10])
        responseCode = bytes[offset + 11]
        answerCount = bytes.integer16(at: offset + 12)
        authorityCount = bytes.integer16(at: offset + 14)
        additionalCount = bytes.integer16(at: offset + 16)
        extendedErrorLength = bytes.integer16(at: offset + 18)
        basis = bytes.integer32(at: offset + 20)
        guard keep > 0, keep <= Int32.max, flags.isSubset(of: .kept), responseCode < 16, flags.whose != nil else {
            return nil
        }
        flags.insert(.live)
    }
}

/// Reads the outer form of a snapshot, which may be hostile: each length and checksum is checked before it is used.
private struct SnapshotReader {
    let written: DNSCache.Moment
    private let length: Int
    private let headerChecksum: UInt32
    /// The offset of the next block, and its number in the sequence.
    private var offset = Snapshot.headerLength
    private var sequence: UInt32 = 0

    init(length: Int, _ read: (Range<Int>) -> [UInt8]?) throws(SnapshotError) {
        self.length = length
        let available = try Self.bytes(0..<min(length, Snapshot.headerLength), read)
        let header = available.span
        for (index, octet) in Snapshot.magic.enumerated() where index < header.count && header[index] != octet {
            throw .foreign
        }
        guard header.count == Snapshot.headerLength else { throw .truncated }
        let version = header.integer32(at: 8)
        guard version == Snapshot.version else { throw .version(version) }
        headerChecksum = Snapshot.headerChecksum(header)
        guard header.integer32(at: Snapshot.headerLength - 4) == headerChecksum else { throw .damaged(at: 0) }
        let boot = UInt128(header.integer64(at: 24)) << 64 | UInt128(header.integer64(at: 32))
        written = DNSCache.Moment(
            wall: header.integer64(at: 16), tick: header.integer32(at: 12), boot: boot == 0 ? nil : boot)
    }

    /// Octets after the last block that was read.
    var remaining: Int { length - offset }

    /// The next block, after checks of its checksum and its number in the sequence, and the octets that its records
    /// take in the rings; nil at the end.
    mutating func next(_ read: (Range<Int>) -> [UInt8]?) throws(SnapshotError) -> (bytes: [UInt8], extent: Int)? {
        guard remaining >= Snapshot.blockHeaderLength else { throw .truncated }
        let header = try Self.bytes(offset..<offset + Snapshot.blockHeaderLength, read)
        let recordsLength = Int(header.span.integer32(at: 0))
        guard recordsLength <= Snapshot.largestBlock else { throw .damaged(at: offset) }
        guard remaining - Snapshot.blockHeaderLength >= recordsLength else { throw .truncated }
        let bytes = try Self.bytes(offset..<offset + Snapshot.blockHeaderLength + recordsLength, read)
        let block = bytes.span
        guard block.integer32(at: 12) == Snapshot.blockChecksum(block, after: headerChecksum),
            block.integer32(at: 8) == sequence, block.integer32(at: 0) == recordsLength
        else { throw .damaged(at: offset) }
        let extent = try Self.extent(of: block, at: offset)
        offset += bytes.count
        sequence &+= 1
        if extent > 0 { return (bytes, extent) }
        guard remaining == 0 else { throw .damaged(at: offset) }
        return nil
    }

    /// The octets that a block's records will take in the rings. Throws if they do not fill the block or match its
    /// count.
    static func extent(of block: Span<UInt8>, at blockOffset: Int) throws(SnapshotError) -> Int {
        var offset = Snapshot.blockHeaderLength
        var records: UInt32 = 0
        var extent = 0
        while offset < block.count {
            guard block.count - offset >= Snapshot.recordHeaderLength else { throw .damaged(at: blockOffset) }
            let bodyLength = Int(block.integer16(at: offset + 8))
            offset += Snapshot.recordHeaderLength + bodyLength
            records += 1
            extent += Entry.extent(bodyLength: bodyLength)
        }
        guard offset == block.count, records == block.integer32(at: 4) else { throw .damaged(at: blockOffset) }
        return extent
    }

    private static func bytes(_ range: Range<Int>, _ read: (Range<Int>) -> [UInt8]?) throws(SnapshotError) -> [UInt8] {
        guard let bytes = read(range), bytes.count == range.count else { throw .unreadable }
        return bytes
    }
}
