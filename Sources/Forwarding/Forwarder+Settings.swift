public import Base
import DNSCache
import DNSWire

/// Other settings for a forwarder at work.
extension Forwarder {
    /// What of the answers known so far may hold no more.
    public struct Doubt: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Names may have to be asked elsewhere, or to be answered from here.
        public static var routes: Doubt { Doubt(rawValue: 1) }
        /// What names that go to HTTPDNS were answered with may be another answer now.
        public static var serviceAnswers: Doubt { Doubt(rawValue: 2) }
        /// What local resolvers said is to be read otherwise now.
        public static var resolverAnswers: Doubt { Doubt(rawValue: 4) }
    }

    /// Takes other settings over, in one step.
    ///
    /// What is under way ends as it may, and is told to those who wait for it; under a doubt nobody new joins it, none of
    /// it is kept, and a name that HTTPDNS may not be told any more is not sent to it. What is cached and in doubt is
    /// forgotten: answers for which somebody else would be asked now, or that may have other addresses, for
    /// `serviceAnswers` those of all names that go to HTTPDNS, for `resolverAnswers` all that HTTPDNS did not give.
    ///
    /// - Parameters:
    ///   - services: How many HTTPDNS servers there are now; nil if they are the same, and asked in the same way.
    public mutating func reconfigure(
        policy: Policy, timing: Timing, services count: Int?, doubt: Doubt, at now: Tick
    ) {
        let former = (policy: self.policy, timing: self.timing)
        self.policy = policy
        self.timing = timing
        services.heed(timing)
        if let count {
            replaceServices(count: count)
            // Another account may know other names.
            namesWithoutRecord.removeAll()
        }
        if timing.queriesPerSecond != former.timing.queriesPerSecond {
            plan = timing.queriesPerSecond > 0 ? TokenBucket(perSecond: timing.queriesPerSecond) : nil
        }
        guard !doubt.isEmpty else { return }
        generation += 1
        flightOf = [:]
        lookups = [:]
        namesWithoutRecord.removeAll()
        failures.removeAll()
        guard cache.statistics.entries <= Self.mostEntriesToDoubt else { return cache.removeAll() }
        let before = former.policy
        cache.removeAll { name, type, audience in
            // HTTPDNS's answers are for everyone, a resolver's for those who would have asked it the same.
            if doubt.contains(.resolverAnswers), audience != .everyone { return true }
            let route = policy.route(name, type)
            if doubt.contains(.serviceAnswers), route == .service || route == .serviceBinding { return true }
            return route != before.route(name, type) || policy.refusesPrivate(name) != before.refusesPrivate(name)
        }
    }

    /// To look through more would keep questions waiting for longer than some hundredths of a second.
    static var mostEntriesToDoubt: Int { 50_000 }
}
