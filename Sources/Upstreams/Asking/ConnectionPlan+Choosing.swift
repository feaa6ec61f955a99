import Base
import Forwarding

/// Which connection a query goes to, and which are opened and kept.
extension ConnectionPlan {
    // MARK: Room

    /// - Parameter whenHeard: as soon as octets come, if it is doubted.
    private func mayTakeMore(_ connection: PlannedConnection, whenHeard: Bool = false) -> Bool {
        (whenHeard || !connection.isDoubted) && !connection.isDraining
            && connection.queries < queriesPerConnection
    }

    func hasRoom(_ number: ConnectionNumber) -> Bool {
        hasRoom(connections[number])
    }

    private func hasRoom(_ connection: PlannedConnection) -> Bool {
        mayTakeMore(connection) && connection.carried.count < connection.mostAtOnce
            && (connection.answers > 0 || connection.carried.count < firstFlightLimit)
    }

    /// A connection that can take a query now, without opening a new one.
    /// - Parameters:
    ///   - number: It was made after this one, which is doubted or has ended.
    ///   - tick: An idle one has shown by an answer since then that it is alive, or it may have died together with the other.
    mutating func connection(after number: ConnectionNumber, since tick: UInt64) -> ConnectionNumber? {
        if let found = shared.last(where: { $0 > number && hasRoom($0) }) { return found }
        while let index = idle.lastIndex(where: { $0 > number && connections[$0].idleSince >= tick }) {
            let found = idle.remove(at: index)
            if hasRoom(found) { return found }
            close(found)
        }
        return nil
    }

    /// Whether there may be one connection more, beside those that are only kept because they may yet say something.
    var hasPlace: Bool { connections.count - quiet.count < limits.mostConnections }

    /// How many connections may take further queries, now or when some of theirs have ended.
    var usable: Int {
        connections.count - quiet.count - shared.reduce(0) { $0 + (mayTakeMore(connections[$1]) ? 0 : 1) }
    }

    var mayDial: Bool { hasPlace && usable < limits.connections }

    func isPaused(at now: Tick) -> Bool { now < pausedUntil }

    // MARK: Sending

    mutating func send(_ query: QueryNumber, on number: ConnectionNumber, at now: Tick) {
        stopWaiting(query)
        let idleSince = exchange(&connections[number].idleSince, with: 0)
        if idleSince > 0 { connections[number].idleBefore = now.nanoseconds &- idleSince }
        connections[number].queries += 1
        connections[number].carried.append(query)
        if limits.sharesConnections, connections[number].carried.count == 1, !shared.contains(number) {
            shared.append(number)
        }
        let isRace = !queries[query].connections.isEmpty
        if isRace, queries[query].second == nil { queries[query].second = number }
        queries[query].connections.append(number)
        queries[query].sent = now
        act(.send(query, on: number, wasIdle: idleSince > 0, isRace: isRace))
    }

    /// Sends a query once more, on a connection made later than this one, unless it is under way elsewhere or waits.
    mutating func sendElsewhere(_ query: QueryNumber, after number: ConnectionNumber, at now: Tick) {
        guard queries[query].connections.isEmpty, !queries[query].isWaiting else { return }
        send(query, after: number, since: queries[query].asked.nanoseconds, at: now)
    }

    mutating func send(_ query: QueryNumber, after number: ConnectionNumber = 0, since tick: UInt64 = 0, at now: Tick) {
        guard let other = connection(after: number, since: tick) else { return sendOnNew(query, at: now) }
        send(query, on: other, at: now)
    }

    mutating func sendOnNew(_ query: QueryNumber, at now: Tick) {
        heedLessons(at: now)
        if isPaused(at: now) {
            fail(query, .paused)
        } else if mayDial {
            dial(for: query, at: now)
        } else if !wait(query) {
            fail(query, Failure(.unreachable, "too many queries wait for a connection to it"))
        }
    }

    mutating func dial(for query: QueryNumber, at now: Tick) {
        if connections.count >= limits.mostConnections, let first = quiet.first { close(first) }
        let number = connectionNumbers.next()
        connections.insert(PlannedConnection(mostAtOnce: limits.atOnce), as: number)
        newest = number
        act(.dial(number))
        send(query, on: number, at: now)
    }

    // MARK: Keeping

    /// Has no query under way any more: it is kept or closed.
    mutating func keepOrClose(_ number: ConnectionNumber, at now: Tick) {
        guard connections[number].carried.isEmpty else { return }
        shared.drop(number)
        heedLessons(at: now)
        guard connections[number].isEstablished, mayTakeMore(connections[number], whenHeard: true), limits.idleTime > 0,
            !isRemoved
        else { return close(number) }
        let isDoubted = connections[number].isDoubted
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
}

extension [ConnectionNumber] {
    fileprivate mutating func drop(_ number: ConnectionNumber) {
        if let index = lastIndex(of: number) { remove(at: index) }
    }
}
