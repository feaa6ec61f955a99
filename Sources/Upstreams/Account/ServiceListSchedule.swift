import Base
import HTTPDNS

/// Decides when each start-up server is asked for the list of service addresses, and what follows from an answer;
/// without sockets.
///
/// A round asks the servers in order until one answers, each a second time at once if the first attempt failed.
struct ServiceListSchedule {
    enum Action: Equatable {
        /// Ask the start-up server with this index.
        case ask(Int)
        /// The result of the request under way is no longer needed.
        case cancel
        /// Use these service addresses from the answer of the server with this index; without any, use `dnsIp`.
        case use([IPAddress], from: Int)
        /// No server answered.
        case giveUp
    }

    private enum State {
        case waiting(until: Tick)
        case asking(index: Int, attempt: Int, until: Tick)
    }

    /// The actions to carry out, in order; the owner removes them.
    var actions: [Action] = []
    private let servers: Int
    private var state: State
    private var lastRound: Tick?
    /// Whether another round was requested while a round was under way.
    private var isWantedAgain = false

    /// Milliseconds for one attempt, and attempts at one server, as in the service's own SDKs.
    static let attemptTime = 2000
    static let attempts = 2
    /// Milliseconds until the next round after a round without an answer.
    static let pauseAfterFailure = 5 * 60_000
    /// The least milliseconds between the starts of two rounds: an unstable network, or a service that is down, costs
    /// the start-up servers two rounds a minute at most.
    static let leastBetweenRounds = 30_000

    /// - Parameters:
    ///   - servers: The number of start-up servers, at least one.
    ///   - now: The first round begins at the next ``expire(at:)``.
    init(servers: Int, at now: Tick) {
        self.servers = servers
        state = .waiting(until: now)
    }

    var nextDeadline: Tick {
        switch state {
        case .waiting(let until), .asking(_, _, let until): until
        }
    }

    /// The network has changed, or all service addresses fail: asks again as soon as that is allowed.
    mutating func askSoon(at now: Tick) {
        switch state {
        case .waiting(let until): state = .waiting(until: min(until, earliestRound(at: now)))
        case .asking: isWantedAgain = true
        }
    }

    mutating func expire(at now: Tick) {
        guard nextDeadline <= now else { return }
        switch state {
        case .waiting:
            lastRound = now
            ask(0, attempt: 1, at: now)
        case .asking:
            actions.append(.cancel)
            failed(at: now)
        }
    }

    /// The server that was asked has answered.
    mutating func answered(_ configuration: ServiceConfiguration, at now: Tick) {
        guard case .asking(let index, _, _) = state else { return }
        actions.append(.use(configuration.addresses, from: index))
        wait(milliseconds: configuration.ttlMinutes * 60_000, at: now)
    }

    /// The server that was asked has failed.
    mutating func failed(at now: Tick) {
        guard case .asking(let index, let attempt, _) = state else { return }
        if attempt < Self.attempts {
            ask(index, attempt: attempt + 1, at: now)
        } else if index + 1 < servers {
            ask(index + 1, attempt: 1, at: now)
        } else {
            actions.append(.giveUp)
            wait(milliseconds: Self.pauseAfterFailure, at: now)
        }
    }

    private mutating func ask(_ index: Int, attempt: Int, at now: Tick) {
        state = .asking(index: index, attempt: attempt, until: now.advanced(milliseconds: Self.attemptTime))
        actions.append(.ask(index))
    }

    private mutating func wait(milliseconds: Int, at now: Tick) {
        let until = now.advanced(milliseconds: milliseconds)
        state = .waiting(until: isWantedAgain ? min(until, earliestRound(at: now)) : until)
        isWantedAgain = false
    }

    private func earliestRound(at now: Tick) -> Tick {
        lastRound.map { max(now, $0.advanced(milliseconds: Self.leastBetweenRounds)) } ?? now
    }
}
