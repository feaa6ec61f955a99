import Base

/// The labels in a response that repeat the random spelling of the present query or of an earlier query of the daemon.
///
/// Queries go to a resolver with random case. The case comes back wherever a name of the response is a copy of the
/// question's name instead of a compression pointer to it: below a DNAME, in the target of the CNAME made for it (RFC
/// 6672 §3.1), or from a resolver that does not compress; and from a resolver's cache it may be the case of an earlier
/// query. So letters become lower case in each uncompressed owner name, and in the names of RDATA in each label that
/// equals, case aside, a label of the question or of its record's owner. Other names retain their letters: people read
/// the printer's name in a PTR record. Signatures stay valid: for all of these they are made over lower case (RFC 4034
/// §6.2, RFC 6840 §5.1).
struct RepeatedLabels {
    /// The ranges of the labels with upper-case letters to change to lower case.
    private var found: [Range<Int>] = []
    /// The number of RDATA labels compared with those of the question and the owner.
    private var looked = 0

    /// Beyond this number, all labels count as repeated. Messages for people have far fewer; a message of short labels,
    /// each compared with a hundred others, would delay the questions of all clients.
    private static let mostLooked = 1024

    var isEmpty: Bool { found.isEmpty }

    /// - Parameter record: A record that was validated, with its names.
    mutating func look(at record: RecordHeader, _ message: Span<UInt8>) {
        look(message, record.ownerOffset..<record.nameEnd, names: 1) { _ in true }
        guard let layout = DataLayout(record.type), let first = record.firstName(layout, message) else { return }
        look(message, first..<record.end - (layout.suffix ?? 0), names: layout.names) { label in
            let letters = message.bytes(in: label)[...]
            return WireName.hasLabel(message, at: Header.length, letters)
                || WireName.hasLabel(message, at: record.ownerOffset, letters)
        }
    }

    /// Compares the labels of the names with which `range` begins. Labels to which pointers lead are elsewhere, and are
    /// compared there.
    private mutating func look(
        _ message: Span<UInt8>, _ range: Range<Int>, names: Int, where isRepeated: (Range<Int>) -> Bool
    ) {
        func isUpperCase(_ index: Int) -> Bool { lowercased(message[index]) != message[index] }
        guard range.contains(where: isUpperCase) else { return }
        var start = range.lowerBound
        for _ in 0..<names where start < range.upperBound {
            let end = try? WireName.read(message, at: start) { label in
                let letters = label.dropFirst()
                guard label.lowerBound >= start, letters.contains(where: isUpperCase) else { return }
                looked += 1
                if looked > Self.mostLooked || isRepeated(letters) { found.append(letters) }
            }
            start = end?.end ?? range.upperBound
        }
    }

    /// The message with these labels in lower case. A pointer into the middle of a label may then mean another name.
    func inLowerCase(_ message: Span<UInt8>) -> [UInt8] {
        var bytes = message.bytes(in: 0..<message.count)
        for label in found { for index in label { bytes[index] = lowercased(bytes[index]) } }
        return bytes
    }
}

extension WireName {
    /// Whether one of the labels of the valid name at `start` is this one, in any case of letters.
    static func hasLabel(_ message: Span<UInt8>, at start: Int, _ letters: ArraySlice<UInt8>) -> Bool {
        var isFound = false
        _ = try? read(message, at: start) { label in
            guard !isFound, label.count == letters.count + 1 else { return }
            isFound = zip(label.dropFirst(), letters).allSatisfy { lowercased(message[$0]) == lowercased($1) }
        }
        return isFound
    }
}
