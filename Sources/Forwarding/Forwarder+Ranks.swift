public import Base
import DNSCache
import DNSWire

/// `[cache] rank`: addresses are given in the order in which they answered a TCP connection.
///
/// An answer is never held up for it. It is given and stored as it came, or in the order known from an earlier trial; its
/// addresses are tried meanwhile, and then change places in the stored answer.
extension Forwarder {
    /// Gives an answer's addresses the order that is known, and has them tried if it is not.
    mutating func rank(_ answer: inout Answer, of name: NameKey, _ type: RecordType, at now: Tick) {
        guard let ranked = policy.ranked, type == .a || type == .aaaa, let port = ranked.port(of: name.name) else {
            return
        }
        let addresses = answer.addresses
        guard addresses.count > 1 else { return }
        let subject = AddressRanks.Subject(name: name, type: type, port: port)
        if let order = ranks.order(of: subject, at: now) { _ = answer.sortAddresses(by: order.rank) }
        guard let trial = ranks.begin(subject, addresses, at: now) else { return }
        deadlines.insert(.trial(trial.id), at: now.advanced(milliseconds: AddressRanks.patience))
        act(.trial(.begin(TrialID(trial.id), trial.addresses.map { Endpoint($0, port: port) })))
    }

    /// One of the endpoints of ``TrialAction/begin(_:_:)`` has taken the connection, or will not.
    /// - Parameter number: its place among them.
    public mutating func tried(_ trial: TrialID, _ number: Int, hasAnswered: Bool, at now: Tick) {
        guard ranks.isUnderWay(trial.id) else { return }
        if hasAnswered { counters.rankAnswered += 1 }
        if ranks.ended(trial.id, number, hasAnswered: hasAnswered) { endTrial(trial.id, at: now) }
    }

    /// All addresses have answered or failed, or there was time enough: the stored answers get their order.
    mutating func endTrial(_ id: TableID, at now: Tick) {
        guard let (subject, order, isWaiting) = ranks.end(id, at: now) else { return }
        counters.rankFailed += UInt64(order.failed.count)
        if isWaiting { act(.trial(.end(TrialID(id)))) }
        let (name, type) = (subject.name.name, subject.type)
        // The settings may be others by now.
        guard policy.ranked?.port(of: name) == subject.port else { return }
        for audience in Audience.ofClients {
            guard let known = cache.find(name, type: type, for: audience, at: now.seconds)?.answer else { continue }
            var sorted = known
            guard sorted.sortAddresses(by: order.rank) else { continue }
            cache.replaceBody(of: known, by: sorted.body, to: name, type: type, for: audience)
        }
    }

    /// How the addresses of a name are put in order; nil: they are not.
    func ranking(_ name: Name, _ type: RecordType, at now: Tick) -> Explanation.Ranking? {
        guard type == .a || type == .aaaa, let port = policy.ranked?.port(of: name) else { return nil }
        let subject = AddressRanks.Subject(name: NameKey(name), type: type, port: port)
        return Explanation.Ranking(port: port, isKnown: ranks.order(of: subject, at: now) != nil)
    }

    /// What was found holds for the network of before.
    mutating func forgetRanks() {
        for id in ranks.forgetAll() { act(.trial(.end(TrialID(id)))) }
    }
}
