/// The names to which the aliases (CNAME, DNAME) in an answer lead from the name asked, and what belongs to them.
///
/// Only records that belong are passed on. Clients may keep whatever stands in an answer, and the server that was asked has
/// no say about other names.
struct AliasChain {
    /// Where the aliases lead.
    enum Destination {
        /// To records of the type asked.
        case found
        /// To a name of which the answer section holds nothing.
        case nothing(of: Name)
        /// Nowhere: the records belong to other names, or the aliases do not end.
        case unrelated
    }

    private(set) var destination = Destination.unrelated
    /// The name asked, with which the chain begins.
    private let asked: Name
    /// Where each alias leads, one behind the other. Nearly all answers have none, and so need no memory from the heap here.
    private var targets: [Name] = []
    /// The owners of the records of the answer section; nil: all are the name asked.
    private var owners: [Name]?

    /// The longest chain that is followed; resolvers stop no later.
    private static let maximumAliases = 16

    init(_ asked: Asked, _ records: borrowing ResponseRecords, _ message: Span<UInt8>) {
        self.asked = asked.name
        if !records.belongToTheQuestion(message) {
            owners = records.answer.map { (try? Name.read(message, at: $0.ownerOffset).name) ?? .root }
        }
        while targets.count <= Self.maximumAliases {
            let name = targets.last ?? asked.name
            var alias: Name?
            for place in 0..<records.answerCount {
                let record = records[place]
                guard record.recordClass == asked.recordClass else { continue }
                if owners.map({ $0[place] == name }) ?? (name == asked.name) {
                    if record.type == asked.type || asked.type == .any {
                        destination = .found
                        return
                    }
                    if record.type == .cname { alias = try? Name.read(message, at: record.dataOffset).name }
                } else if record.type == .dname, alias == nil, let owner = owners?[place], name.isWithin(owner) {
                    alias = (try? Name.read(message, at: record.dataOffset).name).flatMap {
                        name.moved(from: owner, to: $0)
                    }
                }
            }
            guard let alias else {
                if !targets.isEmpty || records.answerCount == 0 { destination = .nothing(of: name) }
                return
            }
            targets.append(alias)
        }
    }

    /// Whether each record belongs to the answer; nil: all do.
    ///
    /// - In the answer section: records of the chain's names, and each DNAME above that leads from one to the next, with its
    ///   signatures. Any other would lead clients away from names that nobody asked for.
    /// - In the authority section: records at or above one of them. Also NSEC and NSEC3 with their signatures, which stand
    ///   at other names: they say nothing but by a signature that holds.
    func belonging(_ records: borrowing ResponseRecords, _ message: Span<UInt8>) -> [Bool]? {
        guard owners != nil || records.answerCount < records.count else { return nil }
        var all: [Bool] = []
        all.reserveCapacity(records.all.count)
        if let owners {
            let leading = zip(owners, records.answer).map { leads($1, of: $0, message) }
            let leadingOwners = Set(zip(owners, leading).lazy.filter(\.1).map(\.0))
            for (place, record) in records.answer.enumerated() {
                let isSignature = record.covered(message) == .dname && leadingOwners.contains(owners[place])
                all.append(names.contains(owners[place]) || leading[place] || isSignature)
            }
        } else {
            all += records.answer.map { _ in true }
        }
        for record in records.authority {
            let owner = try? Name.read(message, at: record.ownerOffset).name
            all.append(record.isProof(message) || owner.map(isAtOrAbove) ?? false)
        }
        return all.contains(false) ? all : nil
    }

    /// Whether a record is a DNAME that makes one name of the chain the next; or of the last, which leads nowhere then, a name
    /// over 255 octets (RFC 6672 §2.2).
    private func leads(_ record: RecordHeader, of owner: Name, _ message: Span<UInt8>) -> Bool {
        guard record.type == .dname, let target = try? Name.read(message, at: record.dataOffset).name else {
            return false
        }
        let names = names
        return names.indices.contains { place in
            guard names[place].isWithin(owner) else { return false }
            let next = names[place].moved(from: owner, to: target)
            if place < targets.count { return next == targets[place] }
            if case .found = destination { return false }
            return next == nil
        }
    }

    private func isAtOrAbove(_ owner: Name) -> Bool { names.contains { $0.isWithin(owner) } }

    /// The names of the chain.
    private var names: [Name] { [asked] + targets }
}

extension RecordHeader {
    /// Whether it denies names or types by a signature, or is such a signature (RFC 4034 §3.1, §4; RFC 5155).
    fileprivate func isProof(_ message: Span<UInt8>) -> Bool {
        switch type {
        case .nsec, .nsec3: return true
        default:
            let covered = self.covered(message)
            return covered == .nsec || covered == .nsec3
        }
    }

    /// Of a signature: the type of the records that it signs.
    fileprivate func covered(_ message: Span<UInt8>) -> RecordType? {
        guard type == .rrsig, dataLength >= 2 else { return nil }
        return RecordType(rawValue: message.integer16(at: dataOffset))
    }
}

extension Name {
    /// The name with its end `owner` replaced by `target`, as a DNAME says (RFC 6672 §2.2); nil for `owner` itself and
    /// for a result over 255 octets.
    fileprivate func moved(from owner: Name, to target: Name) -> Name? {
        let prefix = wire.count - owner.wire.count
        guard prefix > 0, prefix + target.wire.count <= Name.maximumLength else { return nil }
        return Name(canonical: wire[..<prefix] + target.wire)
    }
}
