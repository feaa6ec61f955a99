import Base

/// The variables that Kubernetes puts into every container for each Service of its namespace ("service links", which
/// have the form of Docker's old links). Those of a Service called `httpdnsd`, or `httpdnsd-` and more, begin as the
/// daemon's own do, and are not the operator's: without this, whoever may make a Service could keep pods from starting.
enum ServiceLink {
    /// Whether it is one of them, by its name and its value: a key that was spelled wrong is not taken for one.
    static func isOne(_ variable: String, _ text: String) -> Bool {
        guard variable.hasPrefix(KeyPlace.variablePrefix), Key.variable(variable) == nil,
            KeyPlace.group(ofVariable: variable) == nil
        else { return false }
        // The Service's name may hold any word that follows here, so each place is tried where one could begin.
        let words = variable.split(separator: "_", omittingEmptySubsequences: false).dropFirst()
        return words.indices.contains { isEnd(words[$0...], text) }
    }

    /// Whether words are what follows a Service's name: `SERVICE_HOST`, `SERVICE_PORT`, `SERVICE_PORT_NAME`, `PORT`,
    /// `PORT_53_UDP`, or that with `PROTO`, `PORT` or `ADDR` behind it.
    private static func isEnd(_ words: ArraySlice<Substring>, _ text: String) -> Bool {
        var words = words
        switch words.popFirst() {
        case "SERVICE":
            let kind = words.popFirst()
            return kind == "HOST" && words.isEmpty ? IPAddress(text) != nil : kind == "PORT" && isPort(text)
        case "PORT":
            if words.isEmpty { return isLink(text) }
            guard words.count <= 3, isPort(words.removeFirst()), let name = words.popFirst() else { return false }
            switch words.first {
            case nil: return isProtocol(name) && isLink(text)
            case "PROTO": return isProtocol(name) && isProtocol(text)
            case "PORT": return isProtocol(name) && isPort(text)
            case "ADDR": return isProtocol(name) && IPAddress(text) != nil
            default: return false
            }
        default: return false
        }
    }

    /// `udp://ADDRESS:PORT`
    private static func isLink(_ text: String) -> Bool {
        guard let colon = text.firstRange(of: "://") else { return false }
        return isProtocol(text[..<colon.lowerBound]) && Endpoint(text[colon.upperBound...]) != nil
    }

    private static func isProtocol(_ text: some StringProtocol) -> Bool {
        ["TCP", "UDP", "SCTP"].contains(text.uppercased())
    }

    private static func isPort(_ text: some StringProtocol) -> Bool { UInt16(text).map { $0 > 0 } ?? false }
}
