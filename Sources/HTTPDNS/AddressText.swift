internal import Base

/// Reads `ADDRESS;…[;]`, one at least and nothing else.
func forEachAddress(
    _ text: Span<UInt8>, _ range: Range<Int>, _ use: (IPAddress) throws(ServiceFailure) -> Void
) throws(ServiceFailure) {
    var start = range.lowerBound
    repeat {
        let end = firstIndex(of: UInt8(ascii: ";"), in: text, start..<range.upperBound) ?? range.upperBound
        guard let address = IPAddress(parsing: text.extracting(start..<end)) else { throw .unparsable }
        try use(address)
        start = end + 1
    } while start < range.upperBound
}

extension IPAddress {
    /// Whether one machine can have it: neither unspecified, "this network" included, nor multicast, reserved or
    /// broadcast (RFC 6890, RFC 4291 §2.4), nor an IPv4 address in the clothes of an IPv6 one (RFC 4291 §2.5.5.2), which
    /// leads past whoever looks for that IPv4 address.
    var isOfOneMachine: Bool {
        if isIPv4 { return low >> 24 > 0 && low >> 24 < 224 }
        return !isUnspecified && high >> 56 != 0xFF && unmapped == self
    }
}
