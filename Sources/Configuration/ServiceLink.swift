import Base

/// Recognises the variables that Kubernetes sets in every container for each Service of its namespace ("service links",
/// in the form of Docker's old links). The variables of a Service called `httpdnsd` or `httpdnsd-…` begin like the
/// daemon's own but do not come from the operator. If they counted as unknown keys, any user who may create a Service
/// could prevent the daemon's start.
enum ServiceLink {
    /// Whether a variable is a service link, by its name and value; a misspelled key must not be mistaken for one.
    static func isOne(_ variable: String, _ text: String) -> Bool {
        guard variable.hasPrefix(KeyPlace.variablePrefix), Key.variable(variable) == nil,
            KeyPlace.group(ofVariable: variable) == nil
        else { return false }
        // The Service's name may contain words of a link's suffix, so each possible beginning of the suffix is tried.
        let words = variable.split(separator: "_", omittingEmptySubsequences: false).dropFirst()
        return words.indices.contains { isEnd(words[$0...], text) }
    }

    /// Whether words are a link's suffix: `SERVICE_HOST`, `SERVICE_PORT`, `SERVICE_PORT_NAME`, `PORT`, `PORT_53_UDP`,
    /// or the last followed by `PROTO`, `PORT` or `ADDR`.
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
