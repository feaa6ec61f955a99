internal import Glibc
internal import Synchronization

/// The right to take a turn of an event loop. One thread has it at a time, and the effects of one turn are visible in
/// the next, on any thread.
struct TurnRight: ~Copyable, Sendable {
    private let lock = Mutex(())
    /// The thread that has the right; 0 if there is none.
    private let holder = Atomic<UInt>(0)

    var isMine: Bool { holder.load(ordering: .relaxed) == pthread_self() }

    /// Waits for the right, calls `body` and returns the right.
    ///
    /// - Precondition: This thread does not have the right.
    func take(_ body: () -> Void) { lock.withLock { _ in hold(body) } }

    /// Calls `body` with the right if it is free, and returns its result; false if any thread has the right.
    func takeIfFree(_ body: () -> Bool) -> Bool {
        // The thread that has the lock must not try it.
        guard holder.load(ordering: .relaxed) == 0 else { return false }
        return lock.withLockIfAvailable { _ in hold(body) } ?? false
    }

    private func hold<Result: Sendable>(_ body: () -> Result) -> Result {
        // The lock alone orders the turns. This exchange shows the order to the thread sanitizer, which does not know
        // the lock.
        _ = holder.exchange(pthread_self(), ordering: .acquiring)
        defer { holder.store(0, ordering: .releasing) }
        return body()
    }
}
