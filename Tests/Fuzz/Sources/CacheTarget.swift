import DNSWire

@testable import DNSCache

extension Target {
    /// The cache's file: as it is, with its checksums made right, and as the records of a file that is right.
    static let cachefile = Target(name: "cachefile") { bytes in
        switch choice(bytes, of: 3) {
        case 0: checkRestored(bytes)
        case 1: checkRestored(repaired(bytes))
        default: checkRestored(wrapped(bytes))
        }
    }
}

private let then = DNSCache.Moment(wall: 1_700_000_000, tick: 4900, boot: 77)
private let now = DNSCache.Moment(wall: 1_700_000_100, tick: 5000, boot: 77)
private let first = DNSCache(bytes: 1 << 20, staleSeconds: 100, prefetchAt: 75, seed: (1, 2))
private let second = DNSCache(bytes: 1 << 20, staleSeconds: 100, prefetchAt: 75, seed: (3, 4))

private func checkRestored(_ snapshot: [UInt8]) {
    for cache in [first, second] {
        cache.obey(number)
        for index in 0..<DNSCache.segmentCount { cache.segments[index].withLock { _ = $0.removeAll(in: .all) } }
    }
    let taken = restore(snapshot, to: first).answers
    check(first.statistics.entries == taken, "\(taken) taken over, \(first.statistics.entries) there")
    check(first.statistics.bytes <= 1 << 20, "too many octets")
    var again: [UInt8] = []
    first.writeSnapshot(at: now) { again += $0 }
    let anew = restore(again, to: second)
    check(anew == (taken, 0, nil), "written anew there are not \(taken)")
    for body in bodies(again[...].dropFirst(Snapshot.headerLength)) { checkAnswer(body) }
}

/// Stands for what decides about an answer.
private func number(_ name: Name, _ type: RecordType, _ audience: Audience) -> Basis {
    Basis(name.wire.count) << 16 | Basis(type.rawValue % 2) << 8 | (audience.isOfAccounts ? 1 : 0)
}

private func restore(_ snapshot: [UInt8], to cache: DNSCache) -> (answers: Int, others: Int, fault: SnapshotError?) {
    cache.restoreSnapshot(length: snapshot.count, at: now) { Array(snapshot[$0]) }
}

/// What was taken over can be given to any client.
private func checkAnswer(_ body: ArraySlice<UInt8>) {
    let length = body.firstNameLength
    let name = Name(wire: Array(body).span, at: 0, length: length)
    let type = RecordType(
        rawValue: UInt16(body[body.startIndex + length]) << 8 | UInt16(body[body.startIndex + length + 1]))
    for dnssecOK in [true, false] {
        let query = Query.message(id: 1, name, type: type, dnssecOK: dnssecOK, checkingDisabled: false)
        guard case .question(let question) = Question.read(query.span) else { fatalError("no question in \(name)") }
        let audience = Audience(of: question)
        let found = second.find(name, type: type, for: audience, at: now.tick)
        if let found { checkReply(question, query) { found.answer.reply(to: question, query, &$0) } }
        checkReply(question, query) { reply in
            var room = reply.mutableSpan
            switch first.answer(
                question, first.key(question, query: query.span), query: query.span, at: now.tick, limit: room.count,
                into: &room)
            {
            case .hit(let length), .hitDueForRefresh(let length):
                check(found?.isFresh == true, "a hit that is not to be found")
                return length
            case .miss:
                check(found?.isFresh != true || found?.isLent == true, "fresh and missed")
                return 0
            }
        }
    }
}

private func checkReply(_ question: Question, _ query: [UInt8], _ write: (inout [UInt8]) -> Int) {
    var reply = [UInt8](repeating: 0xEE, count: 65_535)
    let length = write(&reply)
    guard length > 0 else { return }
    reply.removeLast(reply.count - length)
    do throws(WireError) {
        _ = try Response.read(
            reply.span, id: question.id, to: question.name(in: query.span), type: question.type, defaultNegativeTTL: 30)
    } catch {
        fatalError("a reply from the cache: \(error)")
    }
}

extension Answer {
    fileprivate func reply(to question: Question, _ query: [UInt8], _ reply: inout [UInt8]) -> Int {
        var room = reply.mutableSpan
        return Reply.write(self, age: .fixed(30), to: question, query: query.span, limit: room.count, into: &room)
    }
}

extension ArraySlice<UInt8> {
    /// Octets of the uncompressed name that it begins with.
    fileprivate var firstNameLength: Int {
        var at = startIndex
        while self[at] != 0 { at += 1 + Int(self[at]) }
        return at + 1 - startIndex
    }
}

/// The bodies of the records in the blocks, of a snapshot that is right.
private func bodies(_ blocks: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    var found: [ArraySlice<UInt8>] = []
    var blocks = blocks
    while blocks.count > Snapshot.blockHeaderLength {
        let length = blocks.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        var records = blocks.dropFirst(Snapshot.blockHeaderLength).prefix(length)
        blocks = blocks.dropFirst(Snapshot.blockHeaderLength + length)
        while !records.isEmpty {
            let bodyLength = records.dropFirst(8).prefix(2).reduce(0) { $0 << 8 | Int($1) }
            found.append(records.dropFirst(Snapshot.recordHeaderLength).prefix(bodyLength))
            records = records.dropFirst(Snapshot.recordHeaderLength + bodyLength)
        }
    }
    return found
}

/// The bytes with all checksums and sequence numbers right, as far as there are blocks.
private func repaired(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.count >= Snapshot.headerLength else { return bytes }
    var bytes = bytes
    bytes.replaceSubrange(0..<12, with: Snapshot.header(then)[..<12])
    let checksum = Snapshot.headerChecksum(bytes.span)
    bytes.write(checksum, at: Snapshot.headerLength - 4)
    var offset = Snapshot.headerLength
    var sequence: UInt32 = 0
    while bytes.count - offset >= Snapshot.blockHeaderLength {
        let length = bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
        let end = offset + Snapshot.blockHeaderLength + length
        guard end <= bytes.count else { break }
        bytes.write(sequence, at: offset + 8)
        let block = Array(bytes[offset..<end])
        bytes.write(Snapshot.blockChecksum(block.span, after: checksum), at: offset + 12)
        offset = end
        sequence += 1
    }
    return bytes
}

/// A snapshot whose one block has the bytes as its records, up to the last that is whole.
private func wrapped(_ bytes: [UInt8]) -> [UInt8] {
    var (end, count) = (0, 0 as UInt32)
    while bytes.count - end >= Snapshot.recordHeaderLength {
        let next = end + Snapshot.recordHeaderLength + Int(bytes[end + 8]) << 8 + Int(bytes[end + 9])
        guard next <= bytes.count else { break }
        (end, count) = (next, count + 1)
    }
    let header = Snapshot.header(then)
    var snapshot = header
    for records in [bytes[..<end], []] where end > 0 || records.isEmpty {
        var block = [UInt8](repeating: 0, count: Snapshot.blockHeaderLength) + records
        block.write(UInt32(records.count), at: 0)
        block.write(records.isEmpty ? 0 : count, at: 4)
        snapshot += block
    }
    return repaired(snapshot)
}

extension [UInt8] {
    fileprivate mutating func write(_ value: UInt32, at offset: Int) {
        for index in 0..<4 { self[offset + index] = UInt8(truncatingIfNeeded: value >> UInt32(24 - 8 * index)) }
    }
}
