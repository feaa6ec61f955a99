import Base
import Configuration
import DNSWire
import Forwarding
import Log

extension Report {
    /// An account's `debug`: logs each lookup with its names.
    func lookup(_ outcome: Outcome, at group: String) {
        let prefix = group == Settings.Group.httpdnsName ? "" : "\(group): "
        switch outcome {
        case .addresses(let results, _):
            for result in results {
                log.info("\(prefix)lookup \(result.name): \(result.ipv4.text) \(result.ipv6.text)")
            }
        case .failed(let failure): log.info("\(prefix)lookup failed: \(failure.detail)")
        case .answer: break
        }
    }
}

extension FamilyAddresses {
    fileprivate var text: String {
        switch self {
        case .addresses(let addresses, let ttl): "\(addresses.map(\.description).joined(separator: ";")),\(ttl)"
        case .noRecord: "0"
        case .notAsked: "-"
        }
    }
}
