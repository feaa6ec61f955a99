/// The reason for which bytes are not the expected DNS message; `at` is an offset into the message.
public enum WireError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The message ends inside the element at this offset.
    case truncated(at: Int)
    /// A label type other than RFC 1035's two (RFC 6891 §5 retired the extended ones).
    case badLabel(at: Int)
    /// A name of more than 255 octets (RFC 1035 §2.3.4).
    case nameTooLong(at: Int)
    /// A compression pointer that does not lead backwards into the records, or one hop too many.
    case badPointer(at: Int)
    /// RDATA that does not fit its type.
    case badData(at: Int)
    /// An OPT record that is not the only one, not at the root, not in the additional section, or has broken options
    /// (RFC 6891 §6.1.1); a TSIG record that is not in the additional section (RFC 8945 §5.1).
    case badOption(at: Int)
    /// Names with more labels and pointers, together, than ``ResponseRecords/maximumSteps``.
    case tooManyLabels
    /// Octets after the last record.
    case trailingBytes(at: Int)
    /// A well-formed message that does not answer the query: not a response, another ID or another question.
    case mismatch

    public var description: String {
        switch self {
        case .truncated(let offset): "message ends early, at octet \(offset)"
        case .badLabel(let offset): "unknown label type at octet \(offset)"
        case .nameTooLong(let offset): "name longer than 255 octets at octet \(offset)"
        case .badPointer(let offset): "bad compression pointer at octet \(offset)"
        case .badData(let offset): "record data does not fit its type at octet \(offset)"
        case .badOption(let offset): "bad OPT record at octet \(offset)"
        case .tooManyLabels: "names of more labels and pointers than a message needs"
        case .trailingBytes(let offset): "unexpected octets from octet \(offset) on"
        case .mismatch: "not an answer to the question asked"
        }
    }
}
