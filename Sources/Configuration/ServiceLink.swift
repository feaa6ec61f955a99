import Base

/// Recognises the variables that Kubernetes puts into every container for each Service of its namespace ("service
/// links", in the form of Docker's old links). The variables of a Service called `httpdnsd` or `httpdnsd-…` begin like
/// the daemon's own but are not the operator's: as unknown keys they would keep the daemon from starting, for anyone
/// who may create a Service.
enum ServiceLink {
    /// Whether a variable is a service link, by its name and its value; a misspelled key must not be taken for one.
    static func isOne(_ variable: String, _ text: String) -> Bool {
        guard variable.hasPrefix(KeyPlace.variablePrefix), Key.variable(variable) == nil,
            KeyPlace.group(ofVariable: variable) == nil
        else { return false }
        // The Service's name may contain the words that end a link's name, so each possible beginning of the end is
        // tried.
        let words = variable.split(separator: "_", omittingEmptySubsequences: false).dropFirst()
        return words.indices.contains { isEnd(words[$0...], text) }
    }

    /// Whether words are the end of a link's name: `SERVICE_HOST`, `SERVICE_PORT`, `SERVICE_PORT_NAME`, `PORT`,
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
