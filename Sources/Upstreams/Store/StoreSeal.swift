import Base
package import Cryptography
import DNSWire
package import Forwarding

/// Makes the keys and entries of the store: keys that reveal nothing about the questions, and entries that are
/// encrypted and padded.
///
/// A key is made of everything that decides an answer, so that daemons of the fleet with other settings, another
/// account or another route do not find the entry: the question, its DO and CD bits, the group with its settings, and
/// the generation, by which all entries can be invalidated at once.
package final class StoreSeal {
    private let seal: FleetSeal
    /// For each group, the settings that decide its answers.
    var identities: [GroupID: [UInt8]]
    /// Entries of other generations are not found.
    var generation: UInt64 = 0

    package init(_ seal: FleetSeal, _ identities: [GroupID: [UInt8]]) {
        (self.seal, self.identities) = (seal, identities)
    }

    /// The purpose of an entry in the store.
    enum Purpose: UInt8 {
        case fresh = 1
        /// A copy that outlives the entry itself, given when no server answers.
        case stale = 2
        case lease = 3
        case generation = 4
    }

    /// The key of an entry, and the name under which its value is sealed.
    struct Key {
        let text: [UInt8]
        let name: [UInt8]

        fileprivate init(name: [UInt8]) {
            self.name = name
            text = Array(("h1:" + Base64.url.encode(name)).utf8)
        }
    }

    /// The key for a question; nil if the group's settings are not known.
    func key(_ purpose: Purpose, of question: SharedQuestion) -> Key? {
        guard let identity = identities[question.group] else { return nil }
        var octets: [UInt8] = [purpose.rawValue]
        octets.append(generation, octets: 8)
        octets.append(UInt64(identity.count), octets: 4)
        octets += identity
        octets.append(question.traits)
        // A lookup at an account brings both families, so they have one lease.
        let isOfBoth = purpose == .lease && !question.families.isEmpty
        octets.append(isOfBoth ? 0 : UInt64(question.type.rawValue), octets: 2)
        octets.append(UInt64(RecordClass.in.rawValue), octets: 2)
        octets += question.name.wire
        return Key(name: seal.name(of: octets))
    }

    var generationKey: Key { Key(name: seal.name(of: [Purpose.generation.rawValue])) }

    // MARK: Values

    /// The length of a sealed value is a multiple of this.
    static let padding = 128

    /// The value of an entry.
    /// - Parameter stored: The time of writing, in seconds since 1970.
    func value(
        _ content: SharedContent, stored: UInt64, lifetime: UInt32, as key: Key
    ) throws(CryptographyError) -> [UInt8] {
        var octets: [UInt8] = []
        var head = AnswerHead(responseCode: .noError)
        var body: [UInt8] = []
        var flags = Flags.noRecord
        if case .answer(let answer) = content {
            (head, body, flags) = (answer.head, answer.body, [])
            if head.authenticData { flags.insert(.authenticData) }
        }
        octets.append(stored, octets: 8)
        octets.append(UInt64(lifetime), octets: 4)
        octets.append(flags.rawValue)
        octets.append(UInt8(truncatingIfNeeded: head.responseCode.rawValue))
        for number in [head.answerCount, head.authorityCount, head.additionalCount, head.extendedErrorLength] {
            octets.append(UInt64(number), octets: 2)
        }
        octets.append(UInt64(body.count), octets: 2)
        octets += body
        return try seal.seal(padded(octets), as: key.name)
    }

    func value(generation: UInt64, as key: Key) throws(CryptographyError) -> [UInt8] {
        var octets: [UInt8] = []
        octets.append(generation, octets: 8)
        return try seal.seal(padded(octets), as: key.name)
    }

    private func padded(_ octets: [UInt8]) -> [UInt8] {
        let length = octets.count + FleetSeal.overhead
        let excess = length % Self.padding
        return excess == 0 ? octets : octets + [UInt8](repeating: 0, count: Self.padding - excess)
    }

    /// The entry in a value; nil if this fleet did not seal it under this key, for this question, or the cache could
    /// not contain it.
    func entry(_ value: [UInt8], as key: Key, to question: SharedQuestion) -> SharedEntry? {
        guard let octets = seal.open(value, as: key.name) else { return nil }
        var reader = OctetReader(octets)
        guard let stored = reader.integer(8), let lifetime = reader.integer(4), lifetime > 0, lifetime <= Int32.max,
            let flags = reader.integer(1).map({ Flags(rawValue: UInt8($0)) }), let code = reader.count(1),
            let answers = reader.count(2), let authorities = reader.count(2), let additionals = reader.count(2),
            let extendedError = reader.count(2), let length = reader.count(2), let body = reader.take(Int(length)),
            reader.rest.allSatisfy({ $0 == 0 })
        else { return nil }
        let seconds = UInt32(lifetime)
        if flags.contains(.noRecord) {
            return body.isEmpty ? SharedEntry(.noRecord, stored: stored, lifetime: seconds) : nil
        }
        let head = AnswerHead(
            responseCode: ResponseCode(rawValue: code), authenticData: flags.contains(.authenticData),
            answerCount: answers, authorityCount: authorities, additionalCount: additionals,
            extendedErrorLength: extendedError)
        guard head.responseCode == .noError || head.responseCode == .nxDomain else { return nil }
        // The head is longer than a message's, so 12 octets precede the body, like a message's header.
        let message = octets.span.extracting(body.startIndex - 12..<body.endIndex)
        let wire = Array(body)
        guard let answered = try? StoredAnswer.check(message, head), answered.type == question.type,
            Name(wire: wire.span, at: 0, length: answered.nameLength) == question.name
        else { return nil }
        let answer = Answer(head: head, body: wire, keep: seconds, isCacheable: true)
        return SharedEntry(.answer(answer), stored: stored, lifetime: seconds)
    }

    func generation(_ value: [UInt8], as key: Key) -> UInt64? {
        guard let octets = seal.open(value, as: key.name) else { return nil }
        var reader = OctetReader(octets)
        return reader.integer(8)
    }

    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let authenticData = Flags(rawValue: 1)
        static let noRecord = Flags(rawValue: 2)
    }
}

extension OctetReader {
    fileprivate mutating func count(_ octets: Int) -> UInt16? { integer(octets).map { UInt16($0) } }
}
