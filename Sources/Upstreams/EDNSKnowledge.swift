import Base
import DNSWire

/// Which local resolvers do not know EDNS (RFC 6891 §7): they answer a query that has an OPT record with an error and
/// are asked without one. DO cannot be asked then, so their answers have no signatures.
struct EDNSKnowledge {
    /// Until when a server is asked without.
    private var ignorant: [Server: Tick] = [:]

    /// Servers remembered; more are not configured anywhere, and those past it are asked twice each time.
    static let maximumServers = 64
    /// How long it counts, in seconds: a server may have been replaced, or a forger may have sent the error.
    static let lifetime = 900

    func includes(_ server: Server, at now: Tick) -> Bool {
        ignorant[server].map { now >= $0 } ?? true
    }

    /// Forgets all servers but these.
    mutating func keep(_ servers: [Server]) {
        ignorant = ignorant.filter { servers.contains($0.key) }
    }

    /// A server that was asked again without EDNS has answered: the error was about EDNS, not about the question.
    mutating func lacks(_ server: Server, at now: Tick) {
        guard ignorant.count < Self.maximumServers || ignorant[server] != nil else { return }
        ignorant[server] = now.advanced(milliseconds: Self.lifetime * 1000)
    }
}

extension ResponseCode {
    /// What servers say that do not know EDNS, or not our version of it.
    var mayBeAboutEDNS: Bool { self == .formErr || self == .notImp || self == .badVers }
}
