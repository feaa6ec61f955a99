import Base
import DNSWire
import Forwarding

/// The explanation in words, for people.
extension Explained {
    /// The output of the command, without the last line's end.
    package func printed(asJSON: Bool) -> String { asJSON ? json.text : text }

    var text: String {
        var lines = ["\(explanation.name) \(explanation.type)"]
        if let whyAlone { lines.append("By the configuration alone: \(whyAlone)") }
        lines.append("")
        for alias in explanation.aliases {
            lines.append("Alias: \(alias.name) is answered as it is, by [\(alias.group.section)]")
        }
        lines.append("Rule:  \(ruleText)")
        if let exceptionText { lines.append("But:   \(exceptionText), leaves it to others") }
        if let reasonText { lines.append("Why:   \(reasonText)") }
        if let remark { lines.append("Note:  \(remark)") }
        if let privateRemark { lines.append("Note:  \(privateRemark)") }
        lines.append("Asked: \(routeText)")
        if explanation.refusesPrivate {
            lines.append("       Private addresses are taken out of answers (domains.privateAddresses).")
        }
        if let translationText { lines.append("       \(translationText)") }
        if let rankingText { lines.append("       \(rankingText)") }
        lines.append("Cache: \(heldText)")
        if let storeText { lines.append("Store: \(storeText)") }
        lines += storedLines.map { "       \($0)" }
        lines.append("Now:   \(fateText)")
        lines += partLines
        if let advice { lines += ["", advice] }
        return lines.joined(separator: "\n")
    }

    /// A line for each group, and below each group a line for each of its servers.
    private var partLines: [String] {
        guard !parts.isEmpty else { return [] }
        var lines = [""]
        var left = Self.mostServers
        for part in parts {
            let standing = words(part.part.standing).text.map { " (\($0))" } ?? ""
            lines.append("\(part.group.title)\(standing):")
            let servers = part.group.servers
            for (index, server) in servers.prefix(left).enumerated() {
                lines.append("  \(server.address), \(server.way)\(state(server, of: part))")
                if part.said.indices.contains(index) { lines.append("    \(text(part.said[index]))") }
            }
            if servers.count > left { lines.append("  and \(servers.count - left) more") }
            lines += part.group.leftOut.map { "  \($0.server) \($0.brief)" }
            left = max(0, left - servers.count)
        }
        return lines
    }

    private func state(_ server: ServerView, of part: Part) -> String {
        var words = ""
        if case .ready(let next) = part.part.standing, next == server.server, part.group.servers.count > 1 {
            words += ", next to be asked"
        }
        if !server.standing.isWell { words += ", \(server.standing.words)" }
        return words + (server.nextTry.map { ", \($0)" } ?? "")
    }

    /// The effect of the network's translator; nil without an effect.
    private var translationText: String? {
        explanation.translation.map { translation in
            switch translation {
            case .addresses(let prefix):
                "Without an AAAA record, it gets the A records' addresses under \(prefix) (nat64.synthesize)."
            case .alias(let name): "\(name) is an alias of it, since its address leads to this one (nat64)."
            }
        }
    }

    /// The order of several addresses; nil: the addresses stay in the order of the answer.
    private var rankingText: String? {
        explanation.ranking.map { ranking in
            "Several addresses are given in the order in which they answer at port \(ranking.port) (cache.rank)"
                + (ranking.isKnown ? "." : ", which is not known yet.")
        }
    }
}

/// The store of the fleet in an explanation.
extension Explained {
    /// The groups that read the store before their servers are asked; nil: no group does.
    var storeText: String? {
        let nouns = parts.filter(\.part.group.isShared).map { $0.group.title }
        guard let shared = explanation.sharedCache, let last = nouns.last else { return nil }
        let others = nouns.dropLast().joined(separator: ", ")
        let who = others.isEmpty ? last : "\(others) or \(last)"
        return "the shared cache is looked into before \(who) is asked; it is \(shared.state)"
    }

    /// The store's entries, a line for each group.
    var storedLines: [String] {
        let lines = parts.compactMap { part in
            part.part.stored.map { "of \(part.group.title): \(text($0))" }
        }
        guard !lines.isEmpty, explanation.sharedCache?.budget == 0 else { return lines }
        return lines + ["no question waits for it now: it seldom has anything, or takes too long"]
    }

    private func text(_ stored: Explanation.Stored) -> String {
        switch stored {
        case .nothing: return "nothing"
        case .outOfTime:
            return "an answer whose time is over, earlier than this daemon's own, or by a wrong clock; it is not given"
        case .unknown(let why): return "not known: \(why)"
        case .entry(.noRecord, let elapsed, _): return "no record; written \(elapsed) s ago"
        case .entry(.answer(let answer), let elapsed, let isFresh):
            let state =
                isFresh
                ? "fresh for \(answer.keep - elapsed) s more"
                : "stale, past its TTL for \(elapsed - min(elapsed, answer.keep)) s"
            return "\(summary(answer, age: isFresh ? elapsed : 0)); written \(elapsed) s ago; \(state)"
        }
    }
}
