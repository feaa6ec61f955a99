internal import Base

/// The padding of replies over encrypted transports (RFC 7830), as long as RFC 8467 §4.1 recommends.
public enum Padding {
    /// The length of a padded reply is a multiple of this number, unless a message cannot be that long.
    public static let block = 468

    /// Whether a client's message asks for padding, which it does by being padded itself. Only then may a reply be
    /// padded (RFC 7830 §4).
    public static func isAsked(_ query: Span<UInt8>) -> Bool {
        guard let opt = opt(of: query), opt.ttl >> 16 & 0xFF == 0 else { return false }
        var offset = opt.dataOffset
        while let (code, data) = query.option(at: offset, before: opt.end) {
            if code == EDNS.paddingOption { return true }
            offset = data.upperBound
        }
        return false
    }

    /// Pads a reply that ends with an OPT record. Any other reply stays unchanged.
    public static func add(to reply: inout [UInt8]) {
        guard let opt = opt(of: reply.span), opt.end == reply.count else { return }
        let least = reply.count + EDNS.optionHead
        let length = min((least + block - 1) / block * block, Int(UInt16.max))
        guard length >= least else { return }
        reply.reserveCapacity(length)
        reply.append16(EDNS.paddingOption)
        reply.append16(UInt16(length - least))
        reply.append(contentsOf: repeatElement(0, count: length - least))
        var octets = reply.mutableSpan
        octets.write(UInt16(opt.dataLength + length - opt.end), at: opt.dataOffset - 2)
    }

    /// The OPT record of a message; nil: the message has no OPT record, or is malformed before it.
    private static func opt(of message: Span<UInt8>) -> RecordHeader? {
        var opt: RecordHeader?
        _ = RecordHeader.forEach(message) { record in
            if record.type == .opt { opt = record }
            return opt == nil
        }
        return opt
    }
}
