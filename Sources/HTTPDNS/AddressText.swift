internal import Base

/// Reads `ADDRESS;…[;]`, at least one address and nothing else, and calls the closure with each.
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
