import Base
import DNSCache
import DNSWire
import Forwarding
import Names

/// The operator's remedy, in one sentence; nil if there is no problem, or if the lines above name the remedy.
extension Explained {
    var advice: String? {
        switch explanation.fate {
        case .refused: return nil
        case .made: return explanation.parts.isEmpty ? adviceWithoutGroup : nil
        case .cached, .stored, .asked, .failedLately, .noServer: break
        }
        guard let part = asked, !part.group.servers.isEmpty else {
            return parts.first { $0.group.servers.isEmpty }.map {
                "Name a server in \($0.group.serversKey): there is none to ask."
            }
        }
        if let (server, said) = zip(part.group.servers, part.said).first(where: { $0.1.failure != nil }) {
            return adviceOnFailure(part, server.address, said)
        }
        guard let said = part.said.first(where: \.isAnswer) else { return nil }
        if explanation.refusesPrivate, said.addresses.contains(where: { $0.isPrivate || inside($0).isPrivate }) {
            return
                "Add the name to domains.privateAllowed if it may have private addresses: they are taken out of answers."
        }
        let bogus = part.part.group.bogusAddresses
        if let address = said.addresses.first(where: { address in
            bogus.contains { $0.contains(address) || $0.contains(inside(address)) }
        }) {
            return
                "Take \(address) out of \(part.group.section).bogusAddresses if it is right: an answer with it is NXDOMAIN."
        }
        if let server = serverElsewhere(of: part) {
            return
                "Name a server of this network in private.servers: \(explanation.name) is a private name, and \(server) is "
                + "told it."
        }
        guard differs(said, from: part.group.id) else { return nil }
        let forged =
            part.group.servers.contains { $0.server.exposure == .clear }
            ? " Answers of a server that is asked in the clear can be forged on the way." : ""
        return
            "Run httpdnsd flush \(explanation.name)\(fileOption) if what is cached is wrong: \(part.group.title) says "
            + "something else now." + forged
    }

    /// The IPv4 address in an address under the network's prefix, by which such an address is judged.
    private func inside(_ address: IPAddress) -> IPAddress {
        guard case .addresses(let prefix) = explanation.translation else { return address }
        return prefix.ipv4(in: address) ?? address
    }

    /// A warning that a private name may be sent out of this network, by any group of its route.
    var privateRemark: String? {
        parts.lazy.compactMap { serverElsewhere(of: $0) }.first.map {
            "\(explanation.name) is a private name, and \($0), which may be asked for it, has no private address"
        }
    }

    /// The server outside this network that may get a private name.
    private func serverElsewhere(of part: Part) -> String? {
        guard DomainRules.isPrivate(explanation.name) else { return nil }
        return part.group.servers.first { !$0.server.isOfThisNetwork }?.address
    }

    /// The remedy for a question that no group may be asked, unless the question only concerns this machine.
    private var adviceWithoutGroup: String? {
        switch explanation.reason {
        // The same pattern in `except` would be an error.
        case .groupAnswers
        where rule?.key == "\(takerSection).domains" && explanation.rule.pattern == .subtree(explanation.name):
            "Take \(explanation.name) out of \(takerSection).domains if this group is not to answer it."
        case .groupAnswers:
            "Add \(explanation.name) to \(takerSection).except if this group is not to answer it."
        case .privateNamesAwaited: "If the network names no resolver, name one in private.servers."
        case .localhost, .nonexistent, .noData, .designation, .noPrivateNames, .any, .hosts, .familyLeftOut,
            .typeLeftOut, .translated, .serviceBinding:
            nil
        // Without `httpOnly`, the route of the fallback begins with itself.
        case .addresses, .privateName, .singleLabel, .notHostname, .type:
            explanation.taker?.id == .fallback
                ? "Give the name to a group in [upstreams.NAME]: with httpdns.httpOnly no name goes to fallback."
                : "Name a group in \(takerSection).thenTry, or give the name to one in [upstreams.NAME]: no group may be asked "
                    + "for it now."
        }
    }

    private func adviceOnFailure(_ part: Part, _ server: String, _ said: Said) -> String {
        let what =
            said.isUntrusted
            ? "Check the certificate of \(server), or what \(part.group.trustKey) trusts" : "Check \(server)"
        return "\(what): \(said.failure ?? ""); \(standIn(for: part))."
    }

    /// The group that answers instead of a failing server.
    private func standIn(for part: Part) -> String {
        if part.said.contains(where: \.isAnswer) {
            return "another server of \(part.group.title) answers in its place"
        }
        let haveAllFailed = part.said.count > 1 && part.said.allSatisfy { $0.failure != nil }
        let others = haveAllFailed ? "no other server of \(part.group.title) answers, and " : ""
        let later = parts.dropFirst(part.index + 1)
        // A server that was not asked, such as an account's, may well answer.
        let next = later.first {
            $0.part.after.contains(.failure) && !$0.part.standing.isWithoutRecord
                && $0.said.contains { $0.failure == nil }
        }
        if let next { return others + "\(next.group.title) is asked in the place of \(part.group.title)" }
        return others + (later.isEmpty ? "no other group may be asked" : "no group answers in its place")
    }

    /// Whether a fresh cached answer is the group's own, and differs from its present one. What is made of the group's
    /// answer always differs: a service binding has an account's hints, and AAAA records are made of A records.
    private func differs(_ said: Said, from group: GroupID) -> Bool {
        guard let held = explanation.held, held.isFresh, explanation.origin?.id == group,
            explanation.reason != .serviceBinding
        else { return false }
        let (cached, current) = (held.answer.data(explanation.type), said.data(explanation.type))
        // That there is no such record is given as NODATA instead of NXDOMAIN if the name exists elsewhere.
        if current.isEmpty, cached.isEmpty || explanation.translation != nil { return false }
        return cached.isDisjoint(with: current)
    }
}

extension GroupView {
    fileprivate var serversKey: String { "\(self.section).\(isAccount ? "dnsIp" : "servers")" }
    /// The section with the rules for the certificates of the group's servers.
    fileprivate var trustKey: String { self.id == .httpdns ? "[tls]" : "[\(self.section)]" }
}
