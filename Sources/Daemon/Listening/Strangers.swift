import Base
import Log
import Synchronization

/// Logs the first question of a client that `listen.allow` excludes, or its connection. Shared by all listeners.
final class Strangers: Sendable {
    private let isReported = Atomic(false)
    private let say: @Sendable (IPAddress, _ hasConnected: Bool) -> Void

    /// - Parameter say: Called with the first client, and with the first one after each change of `listen.allow`.
    init(_ say: @escaping @Sendable (IPAddress, _ hasConnected: Bool) -> Void) { self.say = say }

    /// A question was refused or a connection closed, which its listener counts. From any thread.
    func report(_ client: IPAddress, hasConnected: Bool) {
        if isReported.load(ordering: .relaxed) || isReported.exchange(true, ordering: .relaxed) { return }
        say(client, hasConnected)
    }

    /// `listen.allow` has changed.
    func allowHasChanged() { isReported.store(false, ordering: .relaxed) }
}

extension Report {
    func stranger(_ client: IPAddress, hasConnected: Bool) {
        let words = hasConnected ? "a connection of \(client) is closed" : "a question of \(client) is refused"
        say(
            .notice, .questionsRefused, about: "listen.allow",
            "\(words), since listen.allow does not have this address; later ones are only counted",
            ["client": "\(client)"])
    }
}
