import Forwarding

/// Whether HTTPDNS as a whole is out of use: each of its servers has failed several times in a row. Health goes in, and
/// what is news comes out.
struct Outage {
    private(set) var isOut = false

    /// Failures in a row of each server: one alone may be an accident.
    static let failures = 3

    /// - Parameter health: of the servers in use.
    /// - Returns: nil when nothing has changed.
    mutating func update(_ health: [ServerHealth]) -> Bool? {
        guard !health.isEmpty else {
            isOut = false
            return nil
        }
        let isOutNow =
            isOut
            // One answer ends it; a list of other servers is no answer.
            ? !health.contains { $0.consecutiveFailures == 0 && $0.answers > 0 }
            : health.allSatisfy { $0.consecutiveFailures >= Self.failures }
        guard isOutNow != isOut else { return nil }
        isOut = isOutNow
        return isOut
    }
}
