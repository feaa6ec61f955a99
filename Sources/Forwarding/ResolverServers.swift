import Base

/// The local resolvers in their order, and which of them is asked first: the last that had an answer.
struct ResolverServers {
    private(set) var health: [ServerHealth]
    /// Which list of servers this is: they change while the daemon runs, and then a number means another server.
    let list: Int
    private var current = 0

    init(count: Int, list: Int = 0) {
        self.list = list
        health = Array(repeating: ServerHealth(), count: count)
    }

    /// The server for a question that those in `tried` did not answer; nil when all were tried.
    func choose(excluding tried: Set<Int>) -> Int? {
        let (count, start) = (health.count, current)
        return (0..<count).lazy.map { ($0 + start) % count }.first { !tried.contains($0) }
    }

    /// - Parameter hasAnswer: false for SERVFAIL and the like: it is there, but another may know better.
    mutating func answered(_ server: Int, _ hasAnswer: Bool, roundTrip: Int, at now: Tick) -> [Event] {
        if hasAnswer { current = server }
        return health[server].answered(roundTrip: roundTrip, at: now) ? [.resolverAnswersAgain(server: server)] : []
    }

    mutating func failed(_ server: Int, _ failure: Failure, at now: Tick) -> [Event] {
        health[server].failed(failure, at: now) ? [.resolverFailing(server: server, failure)] : []
    }
}
