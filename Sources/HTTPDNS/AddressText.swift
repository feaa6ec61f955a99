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
