import Base
import DNSCache
import DNSWire

/// Lookups that the daemon makes by itself.
extension Forwarder {
    /// Looks up the names of `preResolve` and `keepAliveDomains`. The latter replace the earlier ones, and are
    /// refreshed regularly from now on.
    mutating func start(preResolve: [Name], keepAlive: [Name], at now: Tick) {
        for name in preResolve where !keepAlive.contains(name) { refresh(name, at: now) }
        if !kept.isEmpty { deadlines.compact { if case .kept = $0 { false } else { true } } }
        kept = keepAlive
        for place in kept.indices { refreshKept(place, at: now) }
    }

    private mutating func refresh(_ name: Name, at now: Tick) {
        for type in [RecordType.a, .aaaa] {
            receive(name, type, for: .nobodyInParticular, from: nil, of: .daemon, at: now)
        }
    }

    /// Refreshes a name when its addresses have passed three quarters of their TTL, or it has none, and schedules the
    /// next refresh, at most once a minute as in the SDK. A family without addresses is looked up together with the
    /// other.
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

    /// The least seconds between two refreshes.
    private static var shortestRefresh: UInt32 { 60 }
}

extension Forwarder {
    /// A client that validates asks for a name of an account, and another group is asked in its place.
    mutating func leave(_ flight: Flight, of account: GroupID) {
        counters.fellBack(because: .signed)
        guard leftToValidators.insert(account).inserted else { return }
        act(.report(.leftToValidators(account, asked: flight.route[0].group)))
    }
}

extension Audience {
    /// The audience of the daemon's own questions.
    fileprivate static var nobodyInParticular: Audience { .those(dnssecOK: false, checkingDisabled: false) }
}
