/// Memory that many connections of one queue use in turn, for octets that are read at once and not stored. The memory
/// is not cleared: each part is written before it is read, and a part that was never used takes no page.
@safe
package final class Scratch {
    // The memory is valid as long as the object. Its users are confined to one queue and store no span across calls.
    package let buffer: UnsafeMutableBufferPointer<UInt8>

    package init(_ count: Int) { unsafe buffer = .allocate(capacity: count) }

    /// The first octets of the last read.
    package func first(_ count: Int) -> UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(rebasing: buffer[..<count])
    }

    deinit { unsafe buffer.deallocate() }
}
