import Base
import DNSWire
import Forwarding

/// The content of an answer to the question for a server's addresses.
struct ServerAnswer {
    /// All addresses of the answer: any number, of any kind.
    private(set) var addresses: [IPAddress] = []
    /// The shortest TTL, in seconds.
    private(set) var ttl = UInt32.max
    /// Whether the answer leaves open if there are addresses.
    private(set) var isFailure = false
    /// Why there are no usable addresses.
    private(set) var reason = "no address that can be dialled"

    init(_ outcome: Outcome) {
        switch outcome {
        case .failed(let failure):
            isFailure = true
            reason = failure.detail
        case .addresses(let results):
            for family in results.flatMap({ [$0.ipv6, $0.ipv4] }) {
                guard case .addresses(let addresses, let ttl) = family else { continue }
                self.addresses += addresses
                self.ttl = min(self.ttl, ttl)
            }
            if addresses.isEmpty { reason = "no record" }
        case .answer(let answer): read(answer)
        }
    }

    private mutating func read(_ answer: Answer) {
        let code = answer.head.responseCode
        guard code == .noError, answer.isCacheable else {
            isFailure = code != .nxDomain
            reason = code == .noError ? "an answer that leads nowhere" : "\(code)"
            return
        }
        ttl = answer.keep
        for record in answer.records() where record.section == .answer && record.recordClass == .in {
            guard record.type == .a || record.type == .aaaa else { continue }
            if let address = IPAddress(bytes: record.rdata.span) { addresses.append(address) }
        }
        if addresses.isEmpty { reason = "no record" }
    }
}
