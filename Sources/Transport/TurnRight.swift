internal import Glibc
internal import Synchronization

/// The right to take a turn of an event loop: one thread has it at a time, and what one did in its turn is seen in the
/// next, whoever takes it.
struct TurnRight: ~Copyable, Sendable {
    private let lock = Mutex(())
    /// Who has it; 0: nobody.
    private let holder = Atomic<UInt>(0)

    var isMine: Bool { holder.load(ordering: .relaxed) == pthread_self() }

    /// Waits for it, and gives it back when `body` returns.
    ///
    /// - Precondition: This thread does not have it.
    func take(_ body: () -> Void) {
        lock.withLock { _ in hold(body) }
    }

    /// Takes it if that needs no waiting, and returns what `body` returns; false if somebody has it, be it this thread.
    func takeIfFree(_ body: () -> Bool) -> Bool {
        // The lock must not be tried by the thread that has it.
        guard holder.load(ordering: .relaxed) == 0 else { return false }
        return lock.withLockIfAvailable { _ in hold(body) } ?? false
    }

    private func hold<Result: Sendable>(_ body: () -> Result) -> Result {
        // The lock orders the turns; that these do as well lets the thread sanitizer, which does not know it, see so.
        _ = holder.exchange(pthread_self(), ordering: .acquiring)
        defer { holder.store(0, ordering: .releasing) }
        return body()
    }
}
