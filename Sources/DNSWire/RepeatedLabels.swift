/// Labels in a response that repeat the spelling of a query, this one's or an earlier one's.
///
/// Queries go to a resolver in a spelling by chance. It shows where a name in the response is a copy of the question's and
/// no pointer to it: below a DNAME, in the target of the CNAME made for it (RFC 6672 §3.1), or wherever a resolver does not
/// compress; and out of a resolver's cache it is the spelling of another day. So letters go into lower case in every owner
/// name that is written out, and in the names of RDATA in each label that is one of the question's or of its record's owner's, case aside. Other
/// names keep their letters: a printer's in a PTR record is shown to people. Signatures do not mind: they are made over lower
/// case in all of these (RFC 4034 §6.2, RFC 6840 §5.1).
struct RepeatedLabels {
    /// Of labels with letters in upper case.
    private var found: [Range<Int>] = []
    /// Labels of RDATA that were looked for among others.
    private var looked = 0

    /// Far more than a message holds that people are to read. Past it all are taken for repeated: a message made of nothing
    /// but short labels, each looked for among a hundred others, would hold up everybody's questions.
    private static let mostLooked = 1024

    var isEmpty: Bool { found.isEmpty }

    /// - Parameter record: checked, its names too.
    mutating func look(at record: RecordHeader, _ message: Span<UInt8>) {
        look(message, record.ownerOffset..<record.nameEnd) { _ in true }
        guard let layout = DataLayout(record.type) else { return }
        look(message, record.dataOffset + layout.prefix..<record.end - layout.suffix) { label in
            let letters = message.bytes(in: label)[...]
            return WireName.hasLabel(message, at: Header.length, letters)
                || WireName.hasLabel(message, at: record.ownerOffset, letters)
        }
    }

    /// Looks at the labels that stand in `range`, which one or two names fill; those that pointers lead to stand elsewhere.
    private mutating func look(
        _ message: Span<UInt8>, _ range: Range<Int>, where isRepeated: (Range<Int>) -> Bool
    ) {
        func isUpperCase(_ index: Int) -> Bool { lowercased(message[index]) != message[index] }
        guard range.contains(where: isUpperCase) else { return }
        var start = range.lowerBound
        while start < range.upperBound {
            let end = try? WireName.read(message, at: start) { label in
                let letters = label.dropFirst()
                guard label.lowerBound >= start, letters.contains(where: isUpperCase) else { return }
                looked += 1
                if looked > Self.mostLooked || isRepeated(letters) { found.append(letters) }
            }
            start = end ?? range.upperBound
        }
    }

    /// The message with these labels in lower case. A name whose pointer leads into a label may be another then.
    func inLowerCase(_ message: Span<UInt8>) -> [UInt8] {
        var bytes = message.bytes(in: 0..<message.count)
        for label in found { for index in label { bytes[index] = lowercased(bytes[index]) } }
        return bytes
    }
}

extension WireName {
    /// Whether one of the labels of the valid name at `start` is this one, letters' case aside.
    static func hasLabel(_ message: Span<UInt8>, at start: Int, _ letters: ArraySlice<UInt8>) -> Bool {
        var isFound = false
        _ = try? read(message, at: start) { label in
            guard !isFound, label.count == letters.count + 1 else { return }
            isFound = zip(label.dropFirst(), letters).allSatisfy { lowercased(message[$0]) == lowercased($1) }
        }
        return isFound
    }
}
