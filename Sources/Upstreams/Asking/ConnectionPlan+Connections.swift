import Base
import Forwarding

/// What connections bring, which are opened and how long they are kept.
extension ConnectionPlan {
    mutating func established(_ number: ConnectionNumber, at now: Tick) {
        guard connections.contains(number) else { return }
        connections[number].isEstablished = true
        lessons.established()
        connections[number].isDoubted = false
        for query in connections[number].carried { queries[query].sent = now }
        keepOrClose(number, at: now)
        serveWaiting(at: now)
    }

    func isEstablished(_ number: ConnectionNumber) -> Bool {
        connections.contains(number) && connections[number].isEstablished
    }

    /// The queries that are on it.
    func carried(_ number: ConnectionNumber) -> [QueryNumber] {
        connections.contains(number) ? Array(connections[number].carried) : []
    }

    /// Something has come on it, which is told next.
    mutating func heard(_ number: ConnectionNumber, isAnswer: Bool = false, at now: Tick) {
        guard connections.contains(number) else { return }
        connections[number].isDoubted = false
        connections[number].heardAt = now
        connections[number].idleBefore = 0
        if isAnswer { connections[number].answers += 1 }
    }

    /// It takes no further query, and is closed when none is under way on it.
    mutating func drain(_ number: ConnectionNumber) {
        if connections.contains(number) { connections[number].isDraining = true }
    }

    /// Octets have come, and what they say was told: queries may have ended, so that there is room for others.
    /// - Parameter mostAtOnce: How many requests the server takes at once, as far as it has said so.
    mutating func advanced(_ number: ConnectionNumber, mostAtOnce: Int, at now: Tick) {
        heard(number, at: now)
        if connections.contains(number) { connections[number].mostAtOnce = mostAtOnce }
        if !refused.isEmpty { sendRefused(number, at: now) }
        if connections.contains(number) { keepOrClose(number, at: now) }
        serveWaiting(at: now)
    }

    /// The server has said for how long it keeps idle connections (RFC 7828 §3.4).
    /// - Parameter time: In nanoseconds; 0: the connection is to be closed when nothing is under way on it.
    mutating func told(_ number: ConnectionNumber, idleTime time: UInt64) {
        guard time > 0 else { return drain(number) }
        // A little less than the server keeps it, so that no query meets the end.
        idleTime = min(StreamLimits.longestIdle, time / 5 * 4)
    }

    // MARK: Room

    /// Whether there may be one connection more, beside those that are only kept because they may yet say something.
    var hasPlace: Bool { connections.count - quiet.count < limits.mostConnections }

    /// How many connections may take further queries, now or when some of theirs have ended.
    var usable: Int {
        connections.count - quiet.count - shared.reduce(0) { $0 + (mayTakeMore($1) ? 0 : 1) }
    }

    var mayDial: Bool { hasPlace && usable < limits.connections }

    func isPaused(at now: Tick) -> Bool { now < pausedUntil }

    // MARK: Keeping

    /// Has no query under way any more: it is kept or closed.
    mutating func keepOrClose(_ number: ConnectionNumber, at now: Tick) {
        guard connections[number].carried.isEmpty else { return }
        shared.drop(number)
        heedLessons(at: now)
        let isDoubted = connections[number].isDoubted
        guard connections[number].isEstablished || isDoubted, mayTakeMore(number, whenHeard: true),
            limits.idleTime > 0, !isRemoved
        else { return close(number) }
        // Of two answers that come together the first may have its owner cancel the second.
        guard connections[number].idleSince == 0 || isDoubted != quiet.contains(number) else { return }
        connections[number].idleSince = now.nanoseconds
        if isDoubted {
            quiet.append(number)
        } else {
            quiet.drop(number)
            idle.append(number)
        }
    }

    func idleEnd(of number: ConnectionNumber) -> Tick {
        let time = idle.count > limits.usualIdle ? min(StreamLimits.surplusTime, idleTime) : idleTime
        return Tick(nanoseconds: connections[number].idleSince &+ time)
    }

    func quietEnd(of number: ConnectionNumber) -> Tick {
        Tick(nanoseconds: connections[number].idleSince &+ min(idleTime, Self.doubtTime))
    }

    mutating func close(_ number: ConnectionNumber) {
        unlist(number)
        act(.close(number))
    }

    @discardableResult
    mutating func unlist(_ number: ConnectionNumber) -> PlannedConnection? {
        guard connections.contains(number) else { return nil }
        shared.drop(number)
        idle.drop(number)
        quiet.drop(number)
        connectionNumbers.release(number)
        return connections.remove(number)
    }

    // MARK: Time and change

    /// When ``expire(at:)`` has something to do.
    var nextDeadline: Tick? {
        var next = raced.reduce(Tick?.none) { $0.orEarlier(queries[$1].racedAt) }
        if let first = idle.first { next = next.orEarlier(idleEnd(of: first)) }
        if let first = quiet.first { next = next.orEarlier(quietEnd(of: first)) }
        return next
    }

    mutating func expire(at now: Tick) {
        for query in raced where queries.contains(query) { raceIfDue(query, at: now) }
        while let first = idle.first, idleEnd(of: first) <= now { close(first) }
        while let first = quiet.first, quietEnd(of: first) <= now { close(first) }
    }

    /// No existing connection takes a query any more; those with queries close when these are answered.
    mutating func networkChanged() {
        for connection in connections.numbers { drain(connection) }
        for connection in idle + quiet { close(connection) }
        lessons.forget()
        (idleTime, queriesPerConnection) = (limits.idleTime, limits.queriesPerConnection)
        firstFlightLimit = .max
    }

    /// The group does not have the server any more: what is under way ends as it may, and no connection is kept.
    mutating func remove() {
        isRemoved = true
        networkChanged()
    }

    /// Another number may be learned from how connections have ended, or forgotten.
    mutating func heedLessons(at now: Tick) {
        queriesPerConnection = lessons.queriesPerConnection(at: now)
    }
}

extension [ConnectionNumber] {
    fileprivate mutating func drop(_ number: ConnectionNumber) {
        if let index = lastIndex(of: number) { remove(at: index) }
    }
}
