internal import CLinux
internal import Glibc

/// Wakes a thread that waits for descriptors, from any other thread.
struct Wakeup: ~Copyable, Sendable {
    /// The descriptor is readable from ``wake()`` to ``acknowledge()``.
    let descriptor: Descriptor

    init() throws(SystemError) {
        descriptor = try Descriptor.made(by: "eventfd") { eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC)) }
    }

    func wake() {
        var one: UInt64 = 1
        // Sound: the kernel reads eight bytes. Cannot fail: the counter stays far below its limit.
        _ = unsafe write(descriptor.raw, &one, MemoryLayout<UInt64>.size)
    }

    func acknowledge() {
        var count: UInt64 = 0
        // Sound: the kernel writes eight bytes.
        _ = unsafe read(descriptor.raw, &count, MemoryLayout<UInt64>.size)
    }

    /// Blocks the thread until ``wake()``, or until another descriptor can be read or has failed.
    func wait(or other: borrowing Descriptor) {
        var polls: InlineArray<2, pollfd> = [
            pollfd(fd: descriptor.raw, events: Int16(POLLIN), revents: 0),
            pollfd(fd: other.raw, events: Int16(POLLIN), revents: 0),
        ]
        var span = polls.mutableSpan
        // Sound: the kernel reads and writes the two elements. Interrupted, the caller looks and waits again.
        _ = unsafe span.withUnsafeMutableBufferPointer { unsafe poll($0.baseAddress, 2, -1) }
    }
}
