/// The names to which the aliases (CNAME, DNAME) in an answer lead from the queried name, and the records of these
/// names.
///
/// Only these records are passed on. Clients may cache any record of an answer, and the queried server has no authority
/// over other names. The records of each name come before those of the next one: stub resolvers such as that of glibc
/// do not find an address that comes before its alias.
struct AliasChain {
    /// The end of the aliases.
    enum Destination {
        /// Records of the queried type.
        case found
        /// A name without a record in the answer section.
        case nothing(of: Name)
        /// No end: the records belong to other names, or the aliases form a loop.
        case unrelated
        /// More aliases than ``maximumAliases``.
        case tooFar
    }

    private(set) var destination = Destination.unrelated
    /// The queried name, followed by the target of each alias.
    private var names: [Name]
    /// The indices of the records of the answer section, by their owner; nil: the queried name owns all records, as in
    /// nearly all answers.
    private let owned: [Name: [Int]]?
    /// The DNAME records that lead from one name of the chain to the next, and their signatures. The key is the index
    /// of the record, the value the index of the name from which the record leads.
    private var leading: [Int: Int] = [:]
    /// The DNAME records of which CNAME records are made, by the indices of these.
    private var sources: [Int: Int] = [:]

    /// The longest chain that is followed. Other resolvers stop at 8 to 16.
    static let maximumAliases = 64

    init(_ asked: Asked, _ records: borrowing ResponseRecords, _ message: Span<UInt8>) {
        names = [asked.name]
        owned = records.belongToTheQuestion(message) ? nil : Self.owned(records, message)
        let hasDNAMEs = records.all.prefix(records.answerCount).contains { $0.type == .dname }
        while true {
            let name = names[names.count - 1]
            let indices = owned.map { $0[name] ?? [] } ?? Array(0..<(names.count == 1 ? records.answerCount : 0))
            var (alias, cname, isFound): (Name?, Int?, Bool) = (nil, nil, false)
            for index in indices where records[index].recordClass == asked.recordClass {
                if records[index].type == .cname {
                    (alias, cname) = (try? Name.read(message, at: records[index].dataOffset).name, index)
                }
                isFound = records[index].type == asked.type || asked.type == .any
                if isFound { break }
            }
            // A CNAME that is asked for may be made of a DNAME, and is proven by it alone.
            if hasDNAMEs, alias != nil || !isFound { lead(name, &alias, cname, asked.recordClass, records, message) }
            guard !isFound else {
                destination = .found
                return
            }
            guard let alias else {
                if names.count > 1 || records.answerCount == 0 { destination = .nothing(of: name) }
                return
            }
            guard !names.contains(alias) else { return }
            guard names.count <= Self.maximumAliases else {
                destination = .tooFar
                return
            }
            names.append(alias)
        }
    }

    private static func owned(_ records: borrowing ResponseRecords, _ message: Span<UInt8>) -> [Name: [Int]] {
        var (reader, owned) = (NameReader(), [Name: [Int]]())
        for index in 0..<records.answerCount {
            owned[reader.name(message, at: records[index].ownerOffset) ?? .root, default: []].append(index)
        }
        return owned
    }

    /// Finds the DNAME records that lead from a name to the next one. If no CNAME gives the next name, this sets it from
    /// the DNAME, unless it would exceed 255 octets (RFC 6672 §2.2).
    private mutating func lead(
        _ name: Name, _ alias: inout Name?, _ cname: Int?, _ recordClass: RecordClass,
        _ records: borrowing ResponseRecords, _ message: Span<UInt8>
    ) {
        for parent in name.parents {
            // A name can have only one DNAME (RFC 6672 §2.4).
            guard let indices = owned?[parent], let index = indices.first(where: { records[$0].type == .dname }),
                records[index].recordClass == recordClass,
                let target = try? Name.read(message, at: records[index].dataOffset).name
            else { continue }
            let next = name.moved(from: parent, to: target)
            guard alias == nil || alias == next else { continue }
            alias = next
            leading[index] = names.count - 1
            if let cname { sources[cname] = index }
            for signature in indices where records[signature].covered(message) == .dname {
                leading[signature] = names.count - 1
            }
        }
    }

    /// The TTL of a record in seconds. A server may give the CNAME that it makes of a DNAME a TTL of 0, while the CNAME
    /// lives as long as the DNAME (RFC 6672 §3.1).
    func ttl(of index: Int, _ records: borrowing ResponseRecords) -> UInt32 {
        let ttl = records[index].effectiveTTL
        guard ttl == 0, let source = sources[index] else { return ttl }
        return records[source].effectiveTTL
    }

    /// The indices of the records that are passed on, in order; nil: all records are passed on, unchanged.
    ///
    /// - In the answer section: records of the chain's names, and each DNAME that leads from one of these names to the
    ///   next, with its signatures. Any other DNAME would redirect names that no client has asked for.
    /// - In the authority section: records of these names and of names above them. NSEC and NSEC3 with their signatures
    ///   also at other names, since these records count only with a valid signature.
    func order(_ records: borrowing ResponseRecords, _ message: Span<UInt8>) -> [Int]? {
        guard owned != nil || records.answerCount < records.count else { return nil }
        var order: [Int] = []
        order.reserveCapacity(records.count)
        if let owned {
            var ranks = leading
            for (rank, name) in names.enumerated() { for index in owned[name] ?? [] { ranks[index] = rank } }
            order += ranks.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.map(\.key)
        } else {
            order += 0..<records.answerCount
        }
        var reader = NameReader()
        var above: Set<Name> = []
        for name in names {
            for end in [name] + name.parents { guard above.insert(end).inserted else { break } }
        }
        for index in records.answerCount..<records.count {
            let isAbove = reader.name(message, at: records[index].ownerOffset).map { above.contains($0) } ?? false
            if isAbove || records[index].isProof(message) { order.append(index) }
        }
        return order.elementsEqual(0..<records.count) ? nil : order
    }
}

/// Reads the owners of consecutive records. Most owners are the same pointer as before, which is read only once.
private struct NameReader {
    private var pointer: UInt16?
    private var latest: Name?

    mutating func name(_ message: Span<UInt8>, at offset: Int) -> Name? {
        let octets = message.integer16(at: offset)
        if octets == pointer { return latest }
        pointer = octets >= 0xC000 ? octets : nil
        latest = try? Name.read(message, at: offset).name
        return latest
    }
}

extension RecordHeader {
    /// Whether the record is NSEC or NSEC3, which prove that a name or type does not exist, or a signature of such a
    /// record (RFC 4034 §3.1, §4; RFC 5155).
    fileprivate func isProof(_ message: Span<UInt8>) -> Bool {
        let proven = covered(message) ?? type
        return proven == .nsec || proven == .nsec3
    }

    /// The type of the records that a signature covers.
    fileprivate func covered(_ message: Span<UInt8>) -> RecordType? {
        guard type == .rrsig, dataLength >= 2 else { return nil }
        return RecordType(rawValue: message.integer16(at: dataOffset))
    }
}

extension Name {
    /// The names above this name, the nearest first and the root last; empty for the root.
    fileprivate var parents: [Name] {
        Name.labels(wire).map { Name(canonical: Array(wire[($0 + Int(wire[$0]) + 1)...])) }
    }

    /// The name with its end `owner` replaced by `target`, as for a DNAME (RFC 6672 §2.2); nil for `owner` itself and
    /// for a result over 255 octets.
    fileprivate func moved(from owner: Name, to target: Name) -> Name? {
        let prefix = wire.count - owner.wire.count
        guard prefix > 0, prefix + target.wire.count <= Name.maximumLength else { return nil }
        return Name(canonical: wire[..<prefix] + target.wire)
    }
}
