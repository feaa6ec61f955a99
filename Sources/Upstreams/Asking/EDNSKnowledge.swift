import Base
import DNSWire

/// Remembers servers that do not know EDNS (RFC 6891 §7): they answer a query that has an OPT record by an error, and
/// are then asked without OPT. Without OPT there is no DO, so their answers have no signatures.
struct EDNSKnowledge {
    /// Until when each of these servers is asked without EDNS.
    private var ignorant: [Server: Tick] = [:]

    /// The most servers remembered. Configurations have fewer; further servers are asked twice each time.
    static let maximumServers = 64
    /// Seconds for which a server is remembered: the server may be replaced, or the error may have been forged.
    static let lifetime = 900

    func includes(_ server: Server, at now: Tick) -> Bool { ignorant[server].map { now >= $0 } ?? true }

    /// Forgets all servers but these.
    mutating func keep(_ servers: [Server]) { ignorant = ignorant.filter { servers.contains($0.key) } }

    /// A server has answered the same question without EDNS, so its error was about EDNS.
    mutating func lacks(_ server: Server, at now: Tick) {
        guard ignorant.count < Self.maximumServers || ignorant[server] != nil else { return }
        ignorant[server] = now.advanced(milliseconds: Self.lifetime * 1000)
    }
}

/// Whether a query has an OPT record.
enum EDNSUse {
    case used
    /// The server is known not to understand OPT.
    case omitted
    /// The same query with OPT has just got an error.
    case tried
}

extension ResponseCode {
    /// Whether this may be the code of a server that does not know EDNS, or not this version of it.
    var mayBeAboutEDNS: Bool { self == .formErr || self == .notImp || self == .badVers }
}
