/// Reads octets, and numbers in network byte order, from the front of an array.
package struct OctetReader {
    package private(set) var rest: ArraySlice<UInt8>

    package init(_ octets: [UInt8]) { rest = octets[...] }

    /// - Returns: The next octets; nil: fewer octets are left.
    package mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// - Parameter octets: The number's octets, at most 8.
    package mutating func integer(_ octets: Int) -> UInt64? { take(octets)?.reduce(0) { $0 << 8 | UInt64($1) } }
}

extension [UInt8] {
    /// Appends the least significant octets of a number, in network byte order.
    package mutating func append(_ number: UInt64, octets: Int) {
        for index in (0..<octets).reversed() { append(UInt8(truncatingIfNeeded: number >> UInt64(8 * index))) }
    }
}
