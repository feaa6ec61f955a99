import Base
package import Forwarding
package import Transport

/// Connects to addresses by TCP to see which addresses answer, and in what order. No data is sent, and each connection
/// is closed at once by FIN: servers log a reset as a fault. Confined to its loop.
package final class AddressTrials {
    /// Called with each address that has taken or refused the connection, by its index in its trial.
    package var tried: (TrialID, _ number: Int, _ hasAnswered: Bool) -> Void = { _, _, _ in }
    /// Called with a trial for which this machine is short of a resource.
    package var short: (TrialID) -> Void = { _ in }
    private let loop: EventLoop
    /// The trials of this turn, which begin at its end.
    private var wanted: [(id: TrialID, endpoints: [Endpoint])] = []
    private var attempts: [TrialID: [Attempt]] = [:]

    package init(loop: EventLoop) { self.loop = loop }

    package func perform(_ action: TrialAction) {
        switch action {
        case .begin(let id, let endpoints): wanted.append((id, endpoints))
        case .end(let id): close(id)
        }
    }

    /// Begins to connect. Called after the turn's replies were sent, so that no reply waits for a trial.
    package func endTurn() {
        while let (id, endpoints) = wanted.popLast() {
            for (number, endpoint) in endpoints.enumerated() { connect(id, number, endpoint) }
        }
    }

    private func connect(_ id: TrialID, _ number: Int, _ endpoint: Endpoint) {
        do throws(SystemError) {
            let attempt = try Attempt(to: endpoint, loop: loop) { [unowned self] attempt, hasAnswered in
                attempts[id]?.removeAll { $0 === attempt }
                if attempts[id]?.isEmpty ?? false { attempts[id] = nil }
                tried(id, number, hasAnswered)
            }
            attempts[id, default: []].append(attempt)
        } catch {
            // Unless this machine is short of something, there is no route.
            if error.isOwn { short(id) } else { tried(id, number, false) }
        }
    }

    /// Closes the connections of a trial that are not established yet.
    private func close(_ id: TrialID) {
        wanted.removeAll { $0.id == id }
        for attempt in attempts.removeValue(forKey: id) ?? [] { attempt.close() }
    }

    package func close() {
        wanted = []
        for id in Array(attempts.keys) { close(id) }
    }
}

/// A connection that is being established.
private final class Attempt: EventHandler {
    private let loop: EventLoop
    private let ended: (Attempt, _ hasAnswered: Bool) -> Void
    private var socket: StreamSocket
    /// Nil if the connection is closed.
    private var registration: Registration?

    /// - Parameter ended: Called once, unless the attempt is closed before.
    init(
        to endpoint: Endpoint, loop: EventLoop, ended: @escaping (Attempt, _ hasAnswered: Bool) -> Void
    ) throws(SystemError) {
        (self.loop, self.ended) = (loop, ended)
        socket = try StreamSocket.connect(to: endpoint)
        registration = try loop.register(socket.descriptor, .writable, self)
    }

    func ready(_ readiness: Readiness) {
        let hasAnswered = (try? socket.connectResult()) != nil
        close()
        ended(self, hasAnswered)
    }

    func close() {
        guard let registration else { return }
        self.registration = nil
        loop.unregister(registration, closing: true)
        socket.close()
    }
}
