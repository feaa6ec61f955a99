/// Big-endian fields in spans, and copies of them; the only file of DNSWire that touches pointers.
extension Span where Element == UInt8 {
    @inlinable @inline(__always)
    package func integer16(at offset: Int) -> UInt16 {
        // Any two octets make a UInt16; the load itself is bounds-checked, once.
        unsafe UInt16(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
    }

    @inlinable @inline(__always)
    package func integer32(at offset: Int) -> UInt32 {
        unsafe UInt32(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    @inlinable @inline(__always)
    package func integer64(at offset: Int) -> UInt64 {
        unsafe UInt64(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// A copy of the octets in `range`; traps if it exceeds the span.
    package func bytes(in range: Range<Int>) -> [UInt8] {
        // Sound: `extracting` has checked the range, and the copy is done before the closure returns.
        unsafe extracting(range).withUnsafeBufferPointer { unsafe Array($0) }
    }
}

extension MutableSpan where Element == UInt8 {
    @inline(__always)
    mutating func write(_ value: UInt16, at offset: Int) { store(value.bigEndian, at: offset) }

    @inline(__always)
    package mutating func write(_ value: UInt32, at offset: Int) { store(value.bigEndian, at: offset) }

    @inline(__always)
    mutating func write(_ value: UInt64, at offset: Int) { store(value.bigEndian, at: offset) }

    @inline(__always)
    private mutating func store<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value, at offset: Int) {
        // Any octets make a UInt8; the store itself is bounds-checked, once.
        var bytes = unsafe mutableBytes
        bytes.storeBytes(of: value, toByteOffset: offset, as: Value.self)
    }

    /// Copies `range` of `source` to `offset`; traps if either side is too short.
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

extension [UInt8] {
    /// An array of at most `count` octets, which `write` fills. Appending to an empty array is 450 instructions cheaper
    /// than any initializer with a size: those look the array's type up each time.
    @inline(__always)
    init(ofAtMost count: Int, _ write: (inout OutputSpan<UInt8>) -> Void) {
        self.init()
        append(addingCapacity: count, initializingWith: write)
    }
}

extension Hasher {
    mutating func combine(octets: [UInt8]) {
        // Sound: the octets are hashed during the call.
        unsafe octets.withUnsafeBytes { unsafe combine(bytes: $0) }
    }
}

extension OutputSpan<UInt8> {
    /// Appends a copy of the octets; traps if there is no room.
    @inline(__always)
    mutating func append(_ octets: Span<UInt8>) {
        precondition(octets.count <= freeCapacity)
        guard !octets.isEmpty else { return }
        // Sound: there is room, which is not yet initialized, and a span that is written overlaps no other.
        unsafe withUnsafeMutableBufferPointer { buffer, initialized in
            unsafe octets.withUnsafeBufferPointer { source in
                unsafe (buffer.baseAddress! + initialized).initialize(from: source.baseAddress!, count: source.count)
            }
            initialized += octets.count
        }
    }

    mutating func append16(_ value: UInt16) {
        append(UInt8(truncatingIfNeeded: value >> 8))
        append(UInt8(truncatingIfNeeded: value))
    }

    mutating func append32(_ value: UInt32) {
        append16(UInt16(truncatingIfNeeded: value >> 16))
        append16(UInt16(truncatingIfNeeded: value))
    }
}

/// Whether two spans, both longer than a range, have the same octets in it.
func isSame(_ a: Span<UInt8>, _ b: Span<UInt8>, _ range: Range<Int>) -> Bool {
    var at = range.lowerBound
    while range.upperBound &- at >= 8 {
        guard a.integer64(at: at) == b.integer64(at: at) else { return false }
        at &+= 8
    }
    while at < range.upperBound {
        guard a[at] == b[at] else { return false }
        at &+= 1
    }
    return true
}
