/// Memory that many connections of one queue use in turn, for octets that are read at once and not stored. It is not
/// cleared: it is written before it is read, and a part that was never used takes no page.
@safe
package final class Scratch {
    // It is valid as long as the object; its users are confined to one queue, and none stores a span across calls.
    package let buffer: UnsafeMutableBufferPointer<UInt8>

    package init(_ count: Int) { unsafe buffer = .allocate(capacity: count) }

    /// The first octets of the last read.
    package func first(_ count: Int) -> UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(rebasing: buffer[..<count])
    }

    deinit { unsafe buffer.deallocate() }
}
