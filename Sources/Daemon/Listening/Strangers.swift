import Base
import Log
import Synchronization

/// Counts the questions of clients that `listen.allow` excludes, and logs the first one. Shared by all listeners.
final class Strangers: Sendable {
    private let counted = Atomic<UInt64>(0)
    private let isReported = Atomic(false)
    private let say: @Sendable (IPAddress) -> Void

    /// - Parameter say: Called with the first client, and with the first one after each change of `listen.allow`.
    init(_ say: @escaping @Sendable (IPAddress) -> Void) { self.say = say }

    /// Questions since the start.
    var count: UInt64 { counted.load(ordering: .relaxed) }

    /// Counts a refused question. From any thread.
    func refused(_ client: IPAddress) {
        counted.add(1, ordering: .relaxed)
        if !isReported.load(ordering: .relaxed), !isReported.exchange(true, ordering: .relaxed) { say(client) }
    }

    /// `listen.allow` has changed.
    func allowHasChanged() { isReported.store(false, ordering: .relaxed) }
}

extension Report {
    func stranger(_ client: IPAddress) {
        say(
            .notice, .questionsRefused, about: "listen.allow",
            "a question of \(client) is refused, since listen.allow does not have this address; later ones are counted alone",
            ["client": "\(client)"])
    }
}
