public import Base
public import DNSCache
public import DNSWire

/// What is looked up although nobody asks, and what changes under the daemon.
extension Forwarder {
    /// Looks up the names of `preResolve` and `keepAliveDomains`; the latter are refreshed from then on whether asked
    /// for or not, and replace those that were until now.
    public mutating func start(preResolve: [Name], keepAlive: [Name], at now: Tick) {
        for name in preResolve where !keepAlive.contains(name) { refresh(name, at: now) }
        if !kept.isEmpty { deadlines.compact { if case .kept = $0 { false } else { true } } }
        kept = keepAlive
        for place in kept.indices { refreshKept(place, at: now) }
    }

    /// Refreshes an answer, for whoever found that it is due.
    public mutating func refresh(_ name: Name, _ type: RecordType, for audience: Audience, at now: Tick) {
        receive(name, type, for: audience, from: nil, of: .daemon, at: now)
    }

    private mutating func refresh(_ name: Name, at now: Tick) {
        for type in [RecordType.a, .aaaa] { refresh(name, type, for: .nobodyInParticular, at: now) }
    }

    /// Refreshes a name of which an address has passed three quarters of its TTL, or which has none, and comes back
    /// when the first of them will have: no more than once a minute, as the SDK does. A family without addresses is
    /// looked up along with the other.
    mutating func refreshKept(_ place: Int, at now: Tick) {
        let name = kept[place]
        let left = [RecordType.a, .aaaa].compactMap { (type: RecordType) -> UInt32? in
            guard let known = cache.find(name, type: type, for: .nobodyInParticular, at: now.seconds),
                known.answer.head.answerCount > 0
            else { return nil }
            let due = known.answer.keep / 4 * 3
            return known.isFresh && known.elapsed < due ? due - known.elapsed : 0
        }.min()
        var next = Self.shortestRefresh
        if let left, left > 0 {
            next = left
        } else {
            refresh(name, at: now)
        }
        deadlines.insert(.kept(place), at: now.advanced(milliseconds: Int(next) * 1000))
    }

    /// Seconds from one refresh to the next.
    private static var shortestRefresh: UInt32 { 60 }

    /// The HTTPDNS servers are others now; requests under way to the former ones end as they may.
    public mutating func replaceServices(count: Int) {
        services = ServiceServers(count: count, list: services.list + 1, timing)
        beginAfresh()
    }

    /// This machine's addresses or routes have changed: nothing that failed before is held against anybody, and the
    /// first HTTPDNS server is tried again.
    public mutating func networkChanged(at now: Tick) {
        services.networkChanged(at: now)
        beginAfresh()
    }

    /// Forgets what was found out about a name, or about all names: what the next question finds is found out anew. The
    /// answers are the cache's to forget.
    public mutating func forget(_ name: Name?) {
        if let name {
            namesWithoutRecord.remove { $0 == NameKey(name) }
            failures.remove { $0.name == NameKey(name) }
        } else {
            namesWithoutRecord.removeAll()
            failures.removeAll()
        }
    }

    private mutating func beginAfresh() {
        for lookup in lookups.values { lookup.triedServers = [] }
        failures.removeAll()
    }
}

extension Audience {
    /// Of a question that the daemon asks for itself.
    fileprivate static var nobodyInParticular: Audience { .those(dnssecOK: false, checkingDisabled: false) }
}
