import Base

/// Writes names into a message, compressed (RFC 1035 §4.1.4): a pointer replaces the end of a name that the message
/// already has.
///
/// The work is bounded: a hostile message of 64 KiB can have thousands of names of a hundred labels each, all in
/// pointers.
struct NameWriter {
    /// The end of a name: its first label, and the number of the shorter end after the label.
    private struct End: Hashable {
        let label: ArraySlice<UInt8>
        let rest: Int
    }

    /// The number of each name end that a pointer can lead to; the root is 0.
    private var numbers: [End: Int] = [:]
    /// The offsets of the ends in the message, by their number.
    private var offsets = [0]
    private var looked = 0

    /// The most labels that are looked up for one message; a server's message has far fewer.
    static let mostLooked = 16_384
    /// The first offset that a pointer cannot hold.
    private static let pointersEnd = 0x4000

    /// Appends a name.
    /// - Parameter wire: A valid name without compression. The case of letters stays, so only names with equal letters
    ///   are the same name.
    /// - Returns: False if too many labels were looked up. Then nothing is appended.
    mutating func append(_ wire: [UInt8], to message: inout [UInt8]) -> Bool {
        var starts = Name.labels(wire)
        looked += starts.count
        guard looked <= Self.mostLooked else { return false }
        var number = 0
        var end = wire.count - 1
        while let last = starts.last, let known = numbers[End(label: wire[last..<end], rest: number)] {
            (number, end) = (known, last)
            starts.removeLast()
        }
        let base = message.count
        message += wire[..<end]
        if number == 0 { message.append(0) } else { message.append16(0xC000 | UInt16(offsets[number])) }
        for start in starts.reversed() where base + start < Self.pointersEnd {
            numbers[End(label: wire[start..<end], rest: number)] = offsets.count
            (number, end) = (offsets.count, start)
            offsets.append(base + start)
        }
        return true
    }
}

extension Answer {
    /// The answer with its names compressed in the types that allow it (RFC 3597 §4).
    func rewritten() -> Answer? { rewritten(0..<head.recordCount) }

    /// The answer with a part of its records, or with its records in another order. Extended errors stay.
    /// - Parameter order: The indices of the records among all of ``body``; those of a section before those of the
    ///   next.
    /// - Returns: Nil if the records cannot be read, or need more work or octets than the records of an honest message.
    func rewritten(_ order: some Sequence<Int>) -> Answer? {
        // Compression pointers count from the header on.
        let message = [UInt8](repeating: 0, count: Header.length) + body
        let bytes = message.span
        guard let nameEnd = RecordHeader.skipName(bytes, at: Header.length), bytes.count >= nameEnd + 4 else {
            return nil
        }
        let records = recordHeaders(bytes, from: nameEnd + 4)
        guard records.count == head.recordCount else { return nil }
        var writer = RecordWriter(room: message.count)
        guard writer.appendQuestion(bytes, nameEnd: nameEnd) else { return nil }
        var answer = self
        (answer.head.answerCount, answer.head.authorityCount, answer.head.additionalCount) = (0, 0, 0)
        for index in order {
            guard writer.append(records[index], of: bytes) else { return nil }
            switch head.section(of: index) {
            case .answer: answer.head.answerCount += 1
            case .authority: answer.head.authorityCount += 1
            case .additional: answer.head.additionalCount += 1
            }
        }
        answer.body = writer.message[Header.length...] + body.suffix(Int(head.extendedErrorLength))
        return answer.body.count <= Self.longestBody ? answer : nil
    }

    /// The longest body that leaves room in a message for its header and the daemon's OPT.
    static var longestBody: Int { Int(UInt16.max) - Reply.minimumUDPSize }
}

/// Writes consecutive records.
private struct RecordWriter {
    private(set) var message: [UInt8] = []
    private var names = NameWriter()
    /// The offset in ``message`` of a name, by its offset in the message that is read.
    private var known: [Int: UInt16] = [:]

    init(room: Int) { message.reserveCapacity(room) }

    /// Appends the header and the question.
    mutating func appendQuestion(_ source: Span<UInt8>, nameEnd: Int) -> Bool {
        message.append(contentsOf: source.bytes(in: 0..<Header.length))
        guard append(source, nameAt: Header.length) != nil else { return false }
        message += source.bytes(in: nameEnd..<nameEnd + 4)
        return true
    }

    mutating func append(_ record: RecordHeader, of source: Span<UInt8>) -> Bool {
        guard append(source, nameAt: record.ownerOffset) != nil else { return false }
        message += source.bytes(in: record.nameEnd..<record.nameEnd + 8)
        let lengthAt = message.count
        message.append16(0)
        var offset = record.dataOffset
        if let layout = DataLayout(record.type) {
            guard let first = record.firstName(layout, source) else { return false }
            message += source.bytes(in: offset..<first)
            offset = first
            for _ in 0..<layout.names {
                guard let end = append(source, nameAt: offset, isCompressed: layout.isCompressed) else { return false }
                offset = end
            }
        }
        guard offset <= record.end else { return false }
        message += source.bytes(in: offset..<record.end)
        guard let length = UInt16(exactly: message.count - lengthAt - 2) else { return false }
        message[lengthAt] = UInt8(length >> 8)
        message[lengthAt + 1] = UInt8(length & 0xFF)
        return true
    }

    /// - Returns: The offset after the name in `source`; nil: the name is invalid or too much work.
    private mutating func append(_ source: Span<UInt8>, nameAt start: Int, isCompressed: Bool = true) -> Int? {
        // Nearly all names are pointers to a name that was written before.
        let isPointer = start + 1 < source.count && source[start] >= 0xC0
        let target = isPointer ? Int(source.integer16(at: start) & 0x3FFF) : start
        if isPointer, isCompressed, let offset = known[target] {
            message.append16(0xC000 | offset)
            return start + 2
        }
        var wire: [UInt8] = []
        guard let end = try? WireName.read(source, at: start, label: { wire += source.bytes(in: $0) }).end else {
            return nil
        }
        wire.append(0)
        guard isCompressed else {
            message += wire
            return end
        }
        let offset = message.count
        guard names.append(wire, to: &message) else { return nil }
        if offset < 0x4000 { known[target] = UInt16(offset) }
        return end
    }
}
