public import DNSCache
public import DNSWire

/// What is looked up although nobody asks.
extension Forwarder {
    /// Looks up the names of `preResolve` and `keepAliveDomains`; the latter are refreshed from then on whether asked
    /// for or not.
    public mutating func start(preResolve: [Name], keepAlive: [Name], at now: Tick) {
        for name in preResolve where !keepAlive.contains(name) { refresh(name, at: now) }
        kept = keepAlive
        for place in kept.indices { refreshKept(place, at: now) }
    }

    /// Refreshes an answer, for whoever found that it is due.
    public mutating func refresh(_ name: Name, _ type: RecordType, for audience: Audience, at now: Tick) {
        receive(name, type, for: audience, from: nil, at: now)
    }

    private mutating func refresh(_ name: Name, at now: Tick) {
        for type in [RecordType.a, .aaaa] { refresh(name, type, for: .nobodyInParticular, at: now) }
    }

    /// Refreshes what has passed three quarters of its TTL, and comes back when the rest will have, at the earliest
    /// after a minute: as the SDK does.
    mutating func refreshKept(_ place: Int, at now: Tick) {
        let name = kept[place]
        var next: UInt32 = .max
        for type in [RecordType.a, .aaaa] {
            let known = cache.find(name, type: type, for: .nobodyInParticular, at: now.seconds)
            let due = known.map { $0.answer.keep / 4 * 3 } ?? 0
            if let known, known.isFresh, known.elapsed < due {
                next = min(next, due - known.elapsed)
            } else {
                refresh(name, type, for: .nobodyInParticular, at: now)
                next = 0
            }
        }
        deadlines.insert(
            .kept(place), at: now.advanced(milliseconds: Int(max(next, Self.shortestRefresh)) * 1000))
    }

    /// In seconds.
    private static var shortestRefresh: UInt32 { 60 }

    /// The HTTPDNS servers are others now; requests under way to the former ones end as they may.
    public mutating func replaceServices(count: Int) {
        services = ServiceServers(
            count: count, list: services.list + 1,
            retryTimesBeforeSwitchServer: timing.retryTimesBeforeSwitchServer,
            minutesBeforeSwitchToMain: timing.minutesBeforeSwitchToMain)
        for name in lookups.keys { lookups[name]?.triedServers = [] }
    }
}

extension Audience {
    /// Of a question that the daemon asks for itself.
    fileprivate static var nobodyInParticular: Audience { .those(dnssecOK: false, checkingDisabled: false) }
}
