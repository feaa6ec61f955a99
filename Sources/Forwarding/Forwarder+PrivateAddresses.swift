import Base
import DNSWire

/// `domains.privateAddresses = "refuse"`: a name of somebody else's must not lead a browser to a machine in this
/// network (DNS rebinding). What comes from upstream loses such addresses before it is kept, so that a hit need not
/// look.
extension Forwarder {
    /// HTTPDNS's addresses of one family without those that the name may not have.
    mutating func permitted(_ addresses: [IPAddress], of name: Name, at now: Tick) -> [IPAddress] {
        guard policy.refusesPrivate(name), addresses.contains(where: \.isPrivate) else { return addresses }
        countPrivate(at: now)
        return addresses.filter { !$0.isPrivate }
    }

    /// A local resolver's answer without them. The name that was asked decides, not the one an alias leads to: a page's
    /// scripts belong to the former.
    mutating func permitted(_ answer: Answer, to key: Flight.Key, at now: Tick) -> Answer {
        let name = key.name.name
        guard policy.refusesPrivate(name), let rest = answer.without(\.isPrivate) else { return answer }
        countPrivate(at: now)
        guard answer.head.responseCode == .noError, answer.answersToTheType > 0, rest.answersToTheType == 0 else {
            return rest
        }
        return policy.noPermittedAddress(name, key.type)
    }

    private mutating func countPrivate(at now: Tick) {
        counters.withoutPrivate += 1
        if privateNews.isNews(at: now) { act(.report(.privateRefused)) }
    }
}
