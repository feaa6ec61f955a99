import Base
import DNSCache
import DNSWire
import Forwarding
import Names

/// What an operator could do about it, in one sentence.
extension Explained {
    var advice: String {
        if let made = adviceOnMade { return made }
        guard case .daemon = source else {
            return "Start the daemon (systemctl start httpdnsd) to see what its cache holds and what the servers say."
        }
        guard let part = asked else { return adviceWithoutGroup }
        if !part.said.contains(where: \.wasAsked) { return adviceOnUnasked(part) }
        let failing = zip(part.group.servers, part.said).filter { $0.1.failure != nil }
        if !part.said.contains(where: \.isAnswer), let (server, said) = failing.first {
            return adviceOnFailure(part, "\(server.server)", said)
        }
        if let (server, said) = failing.first {
            let reason = said.failure ?? ""
            return
                "Look after \(server.server) of \(title(part)) (\(reason)) or take it out of \(part.group.serversKey); another of its "
                + "servers answers in its place."
        }
        return adviceOnAnswers(part)
    }

    private func title(_ part: Part) -> String { Overview.noun(part.group) }

    /// For a question that the daemon answers itself, whatever any server says.
    private var adviceOnMade: String? {
        let (name, type) = (explanation.name, explanation.type)
        switch explanation.fate {
        case .refused where explanation.type.refusal == .formErr: return nil
        case .refused: return "Ask a server of the zone itself: this daemon transfers no zones."
        case .cached, .stored, .asked, .failedLately, .nobody: return nil
        case .made: break
        }
        switch explanation.reason {
        case .localhost: return "Nothing is wrong: \(name) is this machine, and is never looked up anywhere."
        case .nonexistent:
            return explanation.rule.pattern?.description == "use-application-dns.net"
                ? "Nothing is wrong: this NXDOMAIN tells browsers to use this resolver and not one of their own."
                : "Give the host a name that is not reserved if it is to resolve: this one is never looked up anywhere."
        case .noData: return "Nothing is wrong: clients are not to be led past this resolver to another."
        case .any: return "Ask for the type you want, such as A or MX."
        case .hosts: return "Take its line out of \(hostsFile) if the name is to be looked up."
        case .familyLeftOut:
            return "Set \(takerSection).addressType to \"dual\" if \(type) records are wanted all the same."
        case .serviceBinding:
            return
                "Nothing is wrong: clients go on with A and AAAA. Put the name in domains.bypass if its \(type) record is "
                + "worth more than the protection."
        case .addresses where !explanation.parts.isEmpty:
            return
                "Register the domain with the HTTPDNS account if the name should have a record: nobody else may be asked."
        case .addresses, .localName, .singleLabel, .notHostname, .type:
            return
                "Name a group that may be asked in \(takerSection).thenTry, or give the name to one in [upstreams.NAME]: nobody "
                + "may be asked this now."
        }
    }

    private var adviceWithoutGroup: String {
        "Name a server for \(parts.first.map(title) ?? "this name"): there is nobody to ask."
    }

    private func adviceOnUnasked(_ part: Part) -> String {
        if part.group.isAccount { return "Add --ask to have HTTPDNS asked as well; it bills for that." }
        return part.group.servers.isEmpty
            ? "Name a server in \(part.group.serversKey): there is nobody to ask."
            : "Run it again in a moment: nobody was asked, since too much was under way."
    }

    private func adviceOnFailure(_ part: Part, _ server: String, _ said: Said) -> String {
        let reason = said.failure ?? ""
        let what =
            said.isUntrusted
            ? "Look at the certificate of \(server), or at what \(part.group.trustKey) trusts: \(reason)"
            : "Look after \(server): \(reason)"
        let next = parts.dropFirst(part.place + 1).first {
            $0.part.after.contains(.failure) && $0.said.contains(where: \.isAnswer)
        }
        if let next { return "\(what); \(title(next)) is asked in the place of \(title(part))." }
        let others = part.group.servers.count > 1 ? ", and no other server of \(title(part)) answers" : ""
        let rest =
            parts.dropFirst(part.place + 1).isEmpty
            ? "nobody else may be asked" : "nor does anybody answer in its place"
        return "\(what)\(others); \(rest)."
    }

    private func adviceOnAnswers(_ part: Part) -> String {
        let (name, type) = (explanation.name, explanation.type)
        guard let said = part.said.first(where: \.isAnswer) else { return "" }
        if explanation.refusesPrivate, said.addresses.contains(where: \.isPrivate) {
            return
                "Add the name to domains.privateAllowed if it may have private addresses: they are taken out of answers."
        }
        let told = said.data(type) ?? []
        if let held = explanation.held, held.isFresh, explanation.teller?.id == part.group.id,
            held.answer.data(type).isDisjoint(with: told) && !(held.answer.data(type).isEmpty && told.isEmpty)
                || held.answer.head.responseCode != said.responseCode
        {
            return "Run httpdnsd flush \(name) if what is cached is wrong: \(title(part)) says something else now."
        }
        if said.responseCode == .nxDomain {
            return
                "Look for the name in the zone, or give it to another group, if it should exist: \(title(part)) says that it "
                + "does not."
        }
        if told.isEmpty {
            return part.group.isAccount
                ? "Register the domain with the HTTPDNS account if the name should have \(type) records: it knows none."
                : "Look into the zone if the name should have \(type) records: \(title(part)) knows none."
        }
        return "Nothing is wrong: \(title(part)) answers, and clients get what it says."
    }
}

extension Explained.Said {
    var wasAsked: Bool {
        if case .outcome = result { true } else { false }
    }
}

extension Overview.Group {
    /// The key that lists the group's servers, and the section with the rules for their certificates.
    fileprivate var serversKey: String {
        switch id {
        case .httpdns: "httpdns.dnsIp"
        case .fallback: "fallback.servers"
        default: "upstreams.\(name).\(isAccount ? "dnsIp" : "servers")"
        }
    }

    fileprivate var trustKey: String {
        switch id {
        case .httpdns: "[tls]"
        case .fallback: "[fallback]"
        default: "[upstreams.\(name)]"
        }
    }
}
