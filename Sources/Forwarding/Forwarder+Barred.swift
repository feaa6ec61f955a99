import Base

/// Names that are under way to a group which, by settings of now, must not be told them.
extension Forwarder {
    /// Whether other rules have come into effect since a flight began, by which its name must not go to a group.
    func isBarred(_ flight: Flight, _ group: GroupID) -> Bool {
        !flight.isCurrent && !policy.mayAsk(group, flight.key.name.name, flight.key.type)
    }

    /// The same of a name that is to be sent to an account.
    func isBarred(_ lookup: Lookup, _ group: GroupID) -> Bool {
        !lookup.isCurrent && !policy.mayAsk(group, lookup.key.name)
    }

    /// Takes such names back, wherever they wait: for their turn, for a connection, or for being sent once more. The
    /// questions of those who wait are asked anew, by the rules of now.
    mutating func withdrawBarred(at now: Tick) {
        let barred = flights.ids.compactMap { flights[$0] }.filter { flight in
            flight.route.indices.contains { flight.isUnderWay($0) && isBarred(flight, flight.route[$0].group) }
        }
        for id in queries.ids where isBarred(id) { takeBack(id) }
        for place in groups.indices {
            let outbox = groups[place].outbox
            groups[place].outbox = outbox.filter { !isBarred($0, GroupID(place)) }
        }
        for flight in barred { beginAnew(flight, at: now) }
    }

    private func isBarred(_ id: TableID) -> Bool {
        guard let query = queries[id] else { return false }
        return switch query.subject {
        case .message(let flight): isBarred(flight, query.group)
        case .names(let lookups, _): lookups.contains { isBarred($0, query.group) }
        // Nobody wants its answer, and what it asks is not known any more.
        case .measurement: true
        }
    }

    /// Cancels a query. The names of a request that may be asked for are sent again.
    private mutating func takeBack(_ id: TableID) {
        guard let query = takeQuery(id) else { return }
        act(.cancel(QueryID(query.group, id)))
        guard case .names(let lookups, _) = query.subject else { return }
        for lookup in lookups where lookup.query == id {
            lookup.query = nil
            if !isBarred(lookup, query.group) { groups[query.group.rawValue].outbox.append(lookup) }
        }
    }

    /// Ends a flight, and asks its question again for those who wait. They have waited already, so the moments at which
    /// they get what there is stay the same.
    private mutating func beginAnew(_ flight: Flight, at now: Tick) {
        let (key, phase, clients) = (flight.key, flight.phase, flight.takeClients())
        end(flight)
        for client in clients {
            let source = shares.source(at: client.place)
            shares.answered(client.place)
            receive(key.name.name, key.type, for: key.audience, from: client.number, of: source, at: now)
        }
        if let anew = flightOf[key] { tell(anew, .waitedBefore(phase), at: now) }
    }
}
