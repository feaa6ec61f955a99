import Base
import Forwarding

/// The shared cache in words.
extension Overview {
    /// `Shared cache: in use; 12 of 30 looks found something; waits 1 ms at most`; nil: no store is configured.
    var sharedCacheLine: String? { self.sharedCache.map { "Shared cache: \(text(of: $0))" } }

    func text(of shared: SharedCacheOverview) -> String {
        let counters = shared.counters
        let found = "\(counters.hits) of \(counters.reads) looks found something"
        guard shared.isOn else {
            var parts = [shared.state]
            if let next = shared.nextTry {
                parts.append("next try in \(Self.span(UInt64(next.milliseconds(since: self.at) / 1000)))")
            }
            return (parts + [found]).joined(separator: "; ")
        }
        var parts = [shared.state, found]
        if let usual = shared.usual { parts.append("95 % within \(Self.milliseconds(Double(usual) / 1e6))") }
        parts.append(shared.budget == 0 ? "no question waits for it" : "questions wait \(shared.budget) ms at most")
        if counters.refused > 0 { parts.append("\(counters.refused) foreign entries deleted") }
        return parts.joined(separator: "; ")
    }
}

extension SharedCacheOverview {
    /// Whether it is in use; if not, the reason.
    var state: String { isOn ? "in use" : reason.isEmpty ? "not connected yet" : "not in use: \(reason)" }
}
