/// Names as they stand in a message, with compression (RFC 1035 §4.1.4).
///
/// The attacker is a resolver, or whoever forges its datagrams. Pointers go backwards only, so that no name can loop; not
/// into the header, which each client gets anew, nor into a TTL, which counts down. That a pointer meets the beginning of
/// a label of an earlier name is not checked: it could only make a name look different, and who can write that can write
/// any name anyway.
enum WireName {
    /// Pointers followed for one name. Each leads to a label, and a name has 127 at most.
    static let maximumHops = 127

    /// Goes over the labels of the name at `start`, with the range of each (length octet included), and returns the
    /// offset behind the name where it stands. The root label is not among them.
    /// - Parameter ttls: those of the records before it, if the message is passed on: no length or pointer may be in one.
    @inline(__always)
    static func read(
        _ message: Span<UInt8>, at start: Int, avoiding ttls: borrowing TTLFields = TTLFields(),
        label: (Range<Int>) -> Void
    ) throws(WireError) -> Int {
        var offset = start
        var segment = start
        var end: Int?
        var length = 1
        var hops = 0
        while offset < message.count {
            let octet = Int(message[offset])
            // A pointer has two octets.
            if hops > 0, ttls.contains(offset) || octet >= 0xC0 && ttls.contains(offset + 1) {
                throw .badPointer(at: start)
            }
            switch octet {
            case 0: return end ?? offset + 1
            case 1...Name.maximumLabelLength:
                let next = offset + octet + 1
                guard next < message.count else { throw .truncated(at: start) }
                length += octet + 1
                guard length <= Name.maximumLength else { throw .nameTooLong(at: start) }
                label(offset..<next)
                offset = next
            case 0xC0...:
                guard offset + 1 < message.count else { throw .truncated(at: start) }
                let target = Int(message.integer16(at: offset) & 0x3FFF)
                hops += 1
                guard target >= Header.length, target < segment, hops <= maximumHops else {
                    throw .badPointer(at: offset)
                }
                end = end ?? offset + 2
                offset = target
                segment = target
            default: throw .badLabel(at: offset)
            }
        }
        throw .truncated(at: start)
    }

    /// The offset behind a valid name.
    static func end(
        _ message: Span<UInt8>, at start: Int, avoiding ttls: borrowing TTLFields = TTLFields()
    ) throws(WireError) -> Int {
        try read(message, at: start, avoiding: ttls) { _ in }
    }
}

/// Where the TTLs of a message's records are. They are written anew in each reply: a name that is read through one would be
/// another the next second, or none.
struct TTLFields {
    /// Ascending.
    private var offsets: [Int] = []

    mutating func append(_ record: RecordHeader) { offsets.append(record.ttlOffset) }

    /// Whether the octet at `offset` belongs to one.
    func contains(_ offset: Int) -> Bool {
        guard let first = offsets.first, offset >= first else { return false }
        var candidates = 0..<offsets.count
        while candidates.count > 1 {
            let middle = candidates.lowerBound + candidates.count / 2
            candidates = offsets[middle] <= offset ? middle..<candidates.upperBound : candidates.lowerBound..<middle
        }
        return offset < offsets[candidates.lowerBound] + 4
    }
}

extension Name {
    /// The name at `offset`, compressed or not, and the offset behind it.
    static func read(_ message: Span<UInt8>, at offset: Int) throws(WireError) -> (name: Name, end: Int) {
        var wire: [UInt8] = []
        let end = try WireName.read(message, at: offset) { label in
            for index in label { wire.append(lowercased(message[index])) }
        }
        wire.append(0)
        return (Name(canonical: wire), end)
    }
}

/// Where the names are in the RDATA of the types that may or might be compressed (RFC 1035 §3.3, RFC 3597 §4), and in
/// DNAME, which is followed.
struct DataLayout {
    /// Octets before the names.
    let prefix: Int
    let names: Int
    /// Octets behind the names.
    let suffix: Int

    init?(_ type: RecordType) {
        switch type {
        case .ns, .cname, .ptr, .mb, .md, .mf, .mg, .mr, .dname: (prefix, names, suffix) = (0, 1, 0)
        case .mx, .afsdb, .rt, .kx: (prefix, names, suffix) = (2, 1, 0)
        case .minfo, .rp: (prefix, names, suffix) = (0, 2, 0)
        case .soa: (prefix, names, suffix) = (0, 2, 20)
        case .px: (prefix, names, suffix) = (2, 2, 0)
        case .srv: (prefix, names, suffix) = (6, 1, 0)
        default: return nil
        }
    }
}

extension RecordHeader {
    /// Checks RDATA whose form is known: addresses, and types with names. Others are opaque (RFC 3597).
    func checkData(
        _ message: Span<UInt8>, avoiding ttls: borrowing TTLFields = TTLFields()
    ) throws(WireError) {
        if recordClass == .in {
            if type == .a && dataLength != 4 { throw .badData(at: dataOffset) }
            if type == .aaaa && dataLength != 16 { throw .badData(at: dataOffset) }
        }
        guard let layout = DataLayout(type) else { return }
        var offset = dataOffset + layout.prefix
        for _ in 0..<layout.names {
            guard offset < end else { throw .badData(at: dataOffset) }
            offset = try WireName.end(message, at: offset, avoiding: ttls)
        }
        guard offset + layout.suffix == end else { throw .badData(at: dataOffset) }
    }
}
