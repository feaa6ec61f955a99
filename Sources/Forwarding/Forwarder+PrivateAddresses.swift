import Base
import DNSWire

/// `domains.privateAddresses = "refuse"`: a public name must not lead a browser to a machine of this network (DNS
/// rebinding). Such addresses are removed from upstreams' answers before they are cached, so that hits need no check.
extension Forwarder {
    /// HTTPDNS's addresses of one family without the private ones, unless the name may have them.
    mutating func permitted(_ addresses: [IPAddress], of name: Name, at now: Tick) -> [IPAddress] {
        guard policy.refusesPrivate(name), addresses.contains(where: \.isPrivate) else { return addresses }
        countPrivate(at: now)
        return addresses.filter { !$0.isPrivate }
    }

    /// An upstream's answer without private addresses. The name that was asked decides, not the target of an alias:
    /// browsers apply a page's rights by the name in its URL.
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
