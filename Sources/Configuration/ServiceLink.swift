import Base

/// Recognises the variables that Kubernetes sets in every container for each Service of its namespace ("service links",
/// in the form of Docker's old links). The variables of a Service called `httpdnsd` or `httpdnsd-…` begin like the
/// daemon's own but do not come from the operator. If they counted as unknown keys, any user who may create a Service
/// could prevent the daemon's start.
enum ServiceLink {
    /// Whether a variable is a service link, by its name and value. A misspelled key must not count as a service link.
    static func isOne(_ variable: String, _ text: String) -> Bool {
        guard variable.hasPrefix(KeyID.variablePrefix), Key.variable(variable) == nil,
            KeyID.group(ofVariable: variable) == nil
        else { return false }
        // The Service's name may contain words of a link's suffix, so each possible beginning of the suffix is tried.
        let words = variable.split(separator: "_", omittingEmptySubsequences: false).dropFirst()
        return words.indices.contains { isEnd(words[$0...], text) }
    }

    /// Whether words are a link's suffix, with a value of its kind; the port and the protocol may be any.
    private static func isEnd(_ words: ArraySlice<Substring>, _ text: String) -> Bool {
        let form = words.map { isPort($0) ? "53" : isProtocol($0) ? "UDP" : $0 }.joined(separator: "_")
        switch form {
        case "SERVICE_HOST", "PORT_53_UDP_ADDR": return IPAddress(text) != nil
        case "SERVICE_PORT", "PORT_53_UDP_PORT": return isPort(text)
        case "PORT", "PORT_53_UDP": return isLink(text)
        case "PORT_53_UDP_PROTO": return isProtocol(text)
        // The name of one of the Service's ports.
        default: return form.hasPrefix("SERVICE_PORT_") && isPort(text)
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
