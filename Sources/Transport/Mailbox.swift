internal import Base
internal import Synchronization

/// The work that other threads submit to an event loop, first in, first out. The mailbox wakes the loop once for all
/// work until the loop reads it.
final class Mailbox: Sendable {
    typealias Work = @Sendable () -> Void

    private let wakeup: Wakeup
    private let state = Mutex(State())

    private struct State {
        var work: [Work] = []
        var isOpen = true
    }

    init() throws(SystemError) { wakeup = try Wakeup() }

    /// The descriptor is readable when there is work.
    var raw: Int32 { wakeup.descriptor.raw }

    /// Whether all work has begun.
    var isEmpty: Bool { state.withLock { $0.work.isEmpty } }

    func post(_ work: @escaping Work) {
        let isFirst = state.withLock { state in
            guard state.isOpen else { return false }
            state.work.append(work)
            return state.work.count == 1
        }
        if isFirst { wakeup.wake() }
    }

    /// Drops the work and takes no more.
    func close() {
        let dropped = state.withLock { state in
            state.isOpen = false
            return exchange(&state.work, with: [])
        }
        // The work is released outside the lock, since a deinit of the work may post again.
        withExtendedLifetime(dropped) {}
        wakeup.wake()
    }

    /// Runs the work submitted so far.
    func runWork() {
        // The descriptor comes first, then the work: work posted in between is run now or wakes the loop again.
        wakeup.acknowledge()
        let work = state.withLock { exchange(&$0.work, with: []) }
        for item in work { item() }
    }
}
