/// Big-endian fields in spans, and the copies; the one place where DNSWire touches pointers.
extension Span where Element == UInt8 {
    @inline(__always)
    func integer16(at offset: Int) -> UInt16 {
        UInt16(self[offset]) << 8 | UInt16(self[offset + 1])
    }

    @inline(__always)
    func integer32(at offset: Int) -> UInt32 {
        UInt32(integer16(at: offset)) << 16 | UInt32(integer16(at: offset + 2))
    }

    @inline(__always)
    func integer64(at offset: Int) -> UInt64 {
        UInt64(integer32(at: offset)) << 32 | UInt64(integer32(at: offset + 4))
    }

    /// A copy of the octets in `range`; traps when it goes beyond the span.
    func bytes(in range: Range<Int>) -> [UInt8] {
        // Sound: `extracting` has checked the range, and the copy is done before the closure returns.
        unsafe extracting(range).withUnsafeBufferPointer { unsafe Array($0) }
    }
}

extension MutableSpan where Element == UInt8 {
    @inline(__always)
    mutating func write(_ value: UInt16, at offset: Int) {
        self[offset] = UInt8(truncatingIfNeeded: value >> 8)
        self[offset + 1] = UInt8(truncatingIfNeeded: value)
    }

    @inline(__always)
    mutating func write(_ value: UInt32, at offset: Int) {
        write(UInt16(truncatingIfNeeded: value >> 16), at: offset)
        write(UInt16(truncatingIfNeeded: value), at: offset + 2)
    }

    @inline(__always)
    mutating func write(_ value: UInt64, at offset: Int) {
        write(UInt32(truncatingIfNeeded: value >> 32), at: offset)
        write(UInt32(truncatingIfNeeded: value), at: offset + 4)
    }

    /// Copies `range` of `source` to `offset`; traps when either side is too short.
    @inline(__always)
    mutating func copy(_ source: Span<UInt8>, _ range: Range<Int>, to offset: Int) {
        precondition(range.lowerBound >= 0 && range.upperBound <= source.count)
        precondition(offset >= 0 && range.count <= count - offset)
        guard !range.isEmpty else { return }
        // Sound: both ranges were checked above, neither is empty, so both have a base address, and a mutable span
        // overlaps no other.
        unsafe withUnsafeMutableBytes { target in
            unsafe source.withUnsafeBytes { bytes in
                unsafe (target.baseAddress! + offset).copyMemory(
                    from: bytes.baseAddress! + range.lowerBound, byteCount: range.count)
            }
        }
    }
}

extension OutputSpan<UInt8> {
    mutating func append16(_ value: UInt16) {
        append(UInt8(truncatingIfNeeded: value >> 8))
        append(UInt8(truncatingIfNeeded: value))
    }

    mutating func append32(_ value: UInt32) {
        append16(UInt16(truncatingIfNeeded: value >> 16))
        append16(UInt16(truncatingIfNeeded: value))
    }
}

extension [UInt8] {
    mutating func append16(_ value: UInt16) {
        append(UInt8(truncatingIfNeeded: value >> 8))
        append(UInt8(truncatingIfNeeded: value))
    }

    mutating func append32(_ value: UInt32) {
        append16(UInt16(truncatingIfNeeded: value >> 16))
        append16(UInt16(truncatingIfNeeded: value))
    }
}

/// An octet with its ASCII letter in lower case, every other octet unchanged (RFC 4343).
@inline(__always)
func lowercased(_ octet: UInt8) -> UInt8 {
    octet &- 0x41 < 26 ? octet | 0x20 : octet
}
