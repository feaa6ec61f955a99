import Base

/// Names in a message, with compression (RFC 1035 §4.1.4).
///
/// The attacker is a resolver, or a forger of its datagrams. A pointer must lead backwards, so that no name can loop,
/// and its target must end before the name with the pointer begins, so that it cannot run over its own pointer or
/// record. A pointer must not lead into the header, which is rewritten for each client, and no length or pointer of a
/// name may be in an octet that ``Reply`` rewrites. A pointer may lead into the middle of a label: it only makes a name
/// look different, even from second to second, and an attacker who can write that can write any name anyway.
enum WireName {
    /// The most pointers followed for one name. Each leads to a label, and a name has 127 at most.
    static let maximumHops = 127

    /// Visits the labels of the name at `start`, with the range of each (length octet included), without the root
    /// label.
    /// - Parameter rewritten: The earlier octets that change when the message is passed on.
    /// - Returns: The offset after the name at `start`, and the number of labels and pointers read.
    @inline(__always)
    static func read(
        _ message: Span<UInt8>, at start: Int, avoiding rewritten: borrowing RewrittenFields = RewrittenFields(),
        label: (Range<Int>) -> Void
    ) throws(WireError) -> (end: Int, steps: Int) {
        var offset = start
        var segment = start
        var limit = message.count
        var end: Int?
        var length = 1
        var (hops, steps) = (0, 0)
        while offset < limit {
            steps += 1
            let octet = Int(message[offset])
            if hops > 0, rewritten.change(octet, at: offset) { throw .badPointer(at: start) }
            switch octet {
            case 0: return (end ?? offset + 1, steps)
            case 1...Name.maximumLabelLength:
                let next = offset + octet + 1
                guard next < limit else { throw hops > 0 ? .badPointer(at: start) : .truncated(at: start) }
                length += octet + 1
                guard length <= Name.maximumLength else { throw .nameTooLong(at: start) }
                label(offset..<next)
                offset = next
            case 0xC0...:
                guard offset + 1 < limit else { throw hops > 0 ? .badPointer(at: start) : .truncated(at: start) }
                let target = Int(message.integer16(at: offset) & 0x3FFF)
                hops += 1
                guard target >= Header.length, target < segment, hops <= maximumHops else {
                    throw .badPointer(at: offset)
                }
                end = end ?? offset + 2
                offset = target
                segment = target
                limit = start
            default: throw .badLabel(at: offset)
            }
        }
        throw hops > 0 ? .badPointer(at: start) : .truncated(at: start)
    }

    /// The offset after a valid name, and the number of labels and pointers read for it.
    static func end(
        _ message: Span<UInt8>, at start: Int, avoiding rewritten: borrowing RewrittenFields = RewrittenFields()
    ) throws(WireError) -> (end: Int, steps: Int) {
        try read(message, at: start, avoiding: rewritten) { _ in }
    }
}

/// The octets that each reply rewrites: the letters of the question's name, in the client's case, and the TTLs of the
/// records that are passed on. A name with a length or pointer there would change in the next second or for the next
/// client, or become invalid.
struct RewrittenFields: ~Copyable {
    private let questionEnd: Int
    /// The records in order.
    var records: [RecordHeader] = []

    /// - Parameter questionEnd: The offset after the question's name; 0: no name is rewritten.
    /// - Parameter room: The most records.
    init(questionEnd: Int = 0, room: Int = 0) {
        self.questionEnd = questionEnd
        if room > 0 { records.reserveCapacity(room) }
    }

    /// Whether rewriting could change the label's length or the pointer that begins with `octet` at `offset`. In the
    /// question a length is not a letter, but a pointer's second octet may be one.
    func change(_ octet: Int, at offset: Int) -> Bool {
        guard octet >= 0xC0 else { return isInTTL(offset) }
        return offset < questionEnd || isInTTL(offset) || isInTTL(offset + 1)
    }

    private func isInTTL(_ offset: Int) -> Bool {
        guard let first = records.first, offset >= first.ttlOffset else { return false }
        var candidates = 0..<records.count
        while candidates.count > 1 {
            let middle = candidates.lowerBound + candidates.count / 2
            let isBehind = records[middle].ttlOffset <= offset
            candidates = isBehind ? middle..<candidates.upperBound : candidates.lowerBound..<middle
        }
        return offset < records[candidates.lowerBound].ttlOffset + 4
    }
}

extension Name {
    /// The name at `offset`, compressed or not, and the offset after it.
    static func read(_ message: Span<UInt8>, at offset: Int) throws(WireError) -> (name: Name, end: Int) {
        var wire: [UInt8] = []
        let end = try WireName.read(message, at: offset) { label in
            wire.append(message.extracting(label))
        }.end
        wire.append(0)
        return (Name(wire: wire.span, at: 0, length: wire.count), end)
    }
}

/// The positions of names in the RDATA of the types whose names may be compressed (RFC 1035 §3.3, RFC 3597 §4), and of
/// DNAME, which is followed.
struct DataLayout {
    /// The number of octets before the names, and before the strings.
    let prefix: Int
    /// The number of character strings (RFC 1035 §3.3) right before the names.
    let strings: Int
    let names: Int
    /// The number of octets after the names; nil for any number.
    let suffix: Int?
    /// Whether these names may be written compressed: only in the types of RFC 1035 (RFC 3597 §4), the last of which is
    /// TXT.
    let isCompressed: Bool

    init?(_ type: RecordType) {
        strings = type == .naptr ? 3 : 0
        isCompressed = type.rawValue <= RecordType.txt.rawValue
        switch type {
        case .ns, .cname, .ptr, .mb, .md, .mf, .mg, .mr, .dname: (prefix, names, suffix) = (0, 1, 0)
        case .mx, .afsdb, .rt, .kx: (prefix, names, suffix) = (2, 1, 0)
        case .minfo, .rp: (prefix, names, suffix) = (0, 2, 0)
        case .soa: (prefix, names, suffix) = (0, 2, 20)
        case .px: (prefix, names, suffix) = (2, 2, 0)
        case .srv: (prefix, names, suffix) = (6, 1, 0)
        case .naptr: (prefix, names, suffix) = (4, 1, 0)
        case .sig: (prefix, names, suffix) = (18, 1, nil)
        case .nxt: (prefix, names, suffix) = (0, 1, nil)
        default: return nil
        }
    }
}

extension RecordHeader {
    /// Checks RDATA of known form: addresses, and types with names. Other types are opaque (RFC 3597).
    /// - Returns: The number of labels and pointers read.
    @discardableResult
    func checkData(
        _ message: Span<UInt8>, avoiding rewritten: borrowing RewrittenFields = RewrittenFields()
    ) throws(WireError) -> Int {
        if recordClass == .in {
            if type == .a && dataLength != 4 { throw .badData(at: dataOffset) }
            if type == .aaaa && dataLength != 16 { throw .badData(at: dataOffset) }
        }
        guard let layout = DataLayout(type) else { return 0 }
        guard var offset = firstName(layout, message) else { throw .badData(at: dataOffset) }
        var steps = 0
        for _ in 0..<layout.names {
            guard offset < end else { throw .badData(at: dataOffset) }
            let name = try WireName.end(message, at: offset, avoiding: rewritten)
            (offset, steps) = (name.end, steps + name.steps)
        }
        guard layout.suffix.map({ offset + $0 == end }) ?? (offset <= end) else { throw .badData(at: dataOffset) }
        return steps
    }

    /// The offset of the first name in RDATA; nil: the data ends before the name.
    func firstName(_ layout: DataLayout, _ message: Span<UInt8>) -> Int? {
        var offset = dataOffset + layout.prefix
        for _ in 0..<layout.strings where offset < end { offset += 1 + Int(message[offset]) }
        return offset < end ? offset : nil
    }
}
