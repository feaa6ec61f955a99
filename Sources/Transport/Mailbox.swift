internal import CLinux
internal import Glibc
internal import Synchronization

/// The work that other threads hand to an event loop, first in, first out. Wakes the loop once for all that is handed
/// in until the loop looks.
final class Mailbox: Sendable {
    typealias Work = @Sendable () -> Void

    /// Readable when there is work.
    let descriptor: Descriptor
    private let state = Mutex(State())

    private struct State {
        var work: [Work] = []
        var isOpen = true
    }

    init() throws(SystemError) {
        descriptor = Descriptor(
            adopting: try SystemCall.require("eventfd") { eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC)) })
    }

    /// Whether all work has begun.
    var isEmpty: Bool { state.withLock { $0.work.isEmpty } }

    func post(_ work: @escaping Work) {
        let isFirst = state.withLock { state in
            guard state.isOpen else { return false }
            state.work.append(work)
            return state.work.count == 1
        }
        if isFirst { wake() }
    }

    /// Drops the work and takes no more.
    func close() {
        let dropped = state.withLock { state in
            state.isOpen = false
            defer { state.work = [] }
            return state.work
        }
        // Released outside the lock: a deinit of the work may post again.
        withExtendedLifetime(dropped) {}
        wake()
    }

    /// Runs the work handed in so far.
    func runWork() {
        // First the descriptor, then the work: work posted in between is run now or wakes the loop again.
        var count: UInt64 = 0
        _ = unsafe read(descriptor.raw, &count, MemoryLayout<UInt64>.size)
        let work = state.withLock { state in
            let work = state.work
            state.work = []
            state.work.reserveCapacity(min(work.count, 64))
            return work
        }
        for item in work { item() }
    }

    private func wake() {
        var one: UInt64 = 1
        // Sound: the kernel reads eight bytes. Cannot fail: the counter stays far below its limit.
        _ = unsafe write(descriptor.raw, &one, MemoryLayout<UInt64>.size)
    }
}
