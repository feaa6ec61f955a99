import Base
import Forwarding

/// Events of connections, room on them, and their lifetime.
extension ConnectionPlan {
    mutating func established(_ number: ConnectionNumber, at now: Tick) {
        guard connections.contains(number) else { return }
        connections[number].isEstablished = true
        lessons.established()
        connections[number].isDoubted = false
        for query in connections[number].carried { queries[query].sent = now }
        closeUnlessNeeded(number, at: now)
        serveWaiting(at: now)
    }

    func isEstablished(_ number: ConnectionNumber) -> Bool {
        connections.contains(number) && connections[number].isEstablished
    }

    /// The queries on a connection.
    func carried(_ number: ConnectionNumber) -> [QueryNumber] {
        connections.contains(number) ? Array(connections[number].carried) : []
    }

    /// Octets have come on a connection; their events are reported next.
    mutating func heard(_ number: ConnectionNumber, isAnswer: Bool = false, at now: Tick) {
        guard connections.contains(number) else { return }
        connections[number].isDoubted = false
        connections[number].heardAt = now
        connections[number].idleBefore = 0
        if isAnswer { connections[number].answers += 1 }
    }

    /// From now on a connection takes no further query; it is closed when no query is under way on it.
    mutating func drain(_ number: ConnectionNumber) {
        if connections.contains(number) { connections[number].isDraining = true }
    }

    /// Octets have come, and their events were reported: queries may have ended, so that others have room.
    /// - Parameter mostAtOnce: The most requests that the server takes at once, as far as the server has announced it.
    mutating func advanced(_ number: ConnectionNumber, mostAtOnce: Int, at now: Tick) {
        heard(number, at: now)
        if connections.contains(number) {
            connections[number].mostAtOnce = mostAtOnce
            if firstFlightLimit < .max { firstFlightLimit = max(1, mostAtOnce) }
        }
        if !refused.isEmpty { sendRefused(number, at: now) }
        if connections.contains(number) { closeUnlessNeeded(number, at: now) }
        serveWaiting(at: now)
    }

    /// The server has announced how long it keeps idle connections open (RFC 7828 §3.4).
    /// - Parameter time: In nanoseconds; with 0, the connection is to be closed when no query is under way on it.
    mutating func announced(_ number: ConnectionNumber, idleTime time: UInt64) {
        guard time > 0 else { return drain(number) }
        // A little less than the server's time, so that no query meets the end.
        idleTime = min(StreamLimits.longestIdle, time / 5 * 4)
    }

    // MARK: Room

    /// Whether there may be one more connection; connections that only wait for late answers do not count.
    var hasRoomForAnother: Bool { connections.count - quiet.count < limits.mostConnections }

    /// The number of connections that may take further queries, now or when some of their queries have ended.
    var usable: Int { connections.count - quiet.count - shared.reduce(0) { $0 + (mayTakeMore($1) ? 0 : 1) } }

    var mayDial: Bool { hasRoomForAnother && usable < limits.connections }

    func isPaused(at now: Tick) -> Bool { now < pausedUntil }

    // MARK: Keeping

    /// Handles a connection without queries under way: it stays open or is closed.
    mutating func closeUnlessNeeded(_ number: ConnectionNumber, at now: Tick) {
        guard connections[number].carried.isEmpty else { return }
        shared.drop(number)
        applyLessons(at: now)
        let isDoubted = connections[number].isDoubted
        guard connections[number].isEstablished || isDoubted, mayTakeMore(number, whenHeard: true),
            limits.idleTime > 0, !isRemoved
        else { return close(number) }
        // When two answers come together, the first may end the second's query, so the connection is idle already.
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

    /// When ``expire(at:)`` has work.
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

    /// No existing connection takes a further query; a connection with queries closes when they are answered.
    mutating func networkChanged() {
        for connection in connections.numbers { drain(connection) }
        for connection in idle + quiet { close(connection) }
        lessons.forget()
        (idleTime, queriesPerConnection) = (limits.idleTime, limits.queriesPerConnection)
        (firstFlightLimit, refusing, pausedUntil) = (.max, nil, Tick(nanoseconds: 0))
    }

    /// The group no longer has the server: queries under way end normally, and no connection stays open.
    mutating func remove() {
        isRemoved = true
        networkChanged()
    }

    /// Applies the limit that follows from the lessons, which may have changed or been forgotten.
    mutating func applyLessons(at now: Tick) { queriesPerConnection = lessons.queriesPerConnection(at: now) }
}

extension [ConnectionNumber] {
    fileprivate mutating func drop(_ number: ConnectionNumber) {
        if let index = lastIndex(of: number) { remove(at: index) }
    }
}
