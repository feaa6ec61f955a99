import Base
import Configuration
import DNSCache
import DNSWire
import Forwarding
import Names

/// The parts of an explanation's text and JSON.
extension Explained {
    /// The pattern that takes the name, and its group.
    var ruleText: String {
        let decision = explanation.rule
        switch decision.taker {
        case .reserved(let reason): return decision.pattern.map { $0.reserved(reason) } ?? "reserved"
        case .group(let group):
            guard let pattern = decision.pattern else { return withoutPattern(group) }
            let what =
                switch pattern {
                case .singleLabels: "\"\", single labels"
                case .only(let name): "\(name) alone"
                default: "\(pattern)"
                }
            return "\(what), in \(ruleKey)\(rule.map { " (\($0.location.text))" } ?? "")"
        }
    }

    /// The section of the group that takes the name.
    var takerSection: String { explanation.taker?.section ?? Settings.Group.httpdnsName }

    private var ruleKey: String { rule?.key ?? "the configuration" }

    private func withoutPattern(_ group: GroupID) -> String {
        if group == .httpdns {
            return "none takes the name, so HTTPDNS does\(rule.map { " ([\($0.key)] at \($0.location.text))" } ?? "")"
        }
        guard hasAccount else {
            let noun = explanation.taker?.title ?? "fallback"
            return "none takes the name, so \(noun) does: there is no [httpdns] section"
        }
        return
            "none takes the name, and HTTPDNS has those of \(ruleKey) alone\(rule.map { " (\($0.location.text))" } ?? "")"
    }

    var exceptionText: String? {
        guard let exception, let decided = explanation.rule.exception else { return nil }
        return "\(decided.pattern), in \(exception.key) (\(exception.location.text))"
    }

    /// The reason for which the question takes its route; nil if the rule explains the route.
    var reasonText: String? {
        let type = explanation.type
        switch explanation.reason {
        case _ where explanation.fate == .refused:
            return type.refusal == .formErr ? "no data has type \(type)" : "zones are not transferred (\(type))"
        case .localhost: return "answered here: it is this machine"
        case .nonexistent: return "answered here: there is no such name in the DNS"
        case .noData: return "answered here: it has no records"
        case .designation: return "answered here: how else this daemon is asked (listen.name)"
        case .noPrivateNames:
            return "answered here: only this network could know it, and no resolver of this network is known"
        case .privateNamesAwaited:
            return "answered here: only this network could know it, and no resolver of this network is known yet"
        case .groupAnswers:
            let answer = explanation.taker?.answer.map { "\($0)" } ?? ""
            return "answered here: [\(takerSection)] answers \(answer) itself, and asks no server"
        case .any: return "answered here: type ANY gets one HINFO (RFC 8482)"
        case .hosts:
            return "answered here: it is in \(hostsFile.isEmpty ? "the hosts file" : hostsFile)"
                + (isOfThisHostAlone ? ", for programs of this machine alone" : "")
        case .familyLeftOut:
            return "answered here: \(account) is not asked for \(type) (\(takerSection).addressType)"
        case .typeLeftOut: return "answered here: its group is not asked for \(type) (without)"
        case .translated: return "answered here, by the prefix of the network's translator (nat64)"
        case .addresses: return nil
        case .serviceBinding:
            return explanation.parts.isEmpty
                ? "HTTPDNS is asked for addresses alone, and the hints in \(type) of another server would undo its protection"
                : "HTTPDNS is asked for addresses alone; in \(type) of another group its hints are replaced by them"
        case _ where !leavesOutAccount: return nil
        case .privateName: return "it means something on this network alone, so HTTPDNS is not asked"
        case .singleLabel: return "a single label means something on this network alone, so HTTPDNS is not asked"
        case .notHostname:
            return "it has other octets than letters, digits, \"-\" and \"_\", so HTTPDNS is not asked"
        case .type: return "\(account) is asked for A and AAAA alone, not for \(type)"
        }
    }

    /// Whether the hosts file has only loopback addresses of the name, which other hosts do not get.
    private var isOfThisHostAlone: Bool {
        guard case .made(let answer) = explanation.fate, !answer.addresses.isEmpty else { return false }
        return answer.addresses.allSatisfy(\.isLoopback)
    }

    /// The account that takes the name itself or by its `thenTry`.
    private var account: String {
        explanation.taker.flatMap { $0.carriesAddresses ? $0.title : nil } ?? "HTTPDNS"
    }

    /// Whether names of this name's group usually go to an HTTPDNS account, so that the text must explain why this name
    /// does not.
    private var leavesOutAccount: Bool {
        explanation.taker.map { $0.carriesAddresses || $0.thenTry.contains(.httpdns) } ?? false
    }

    /// The groups that are asked, in order.
    var routeText: String {
        guard !explanation.parts.isEmpty else { return "nobody" }
        return parts.map { part in
            let noun = part.group.title
            guard part.index > 0 else { return noun }
            let hedge = part.part.hedgeAfter.map { $0 > 0 ? ", or takes \($0) ms" : ", and beside it" } ?? ""
            return "then \(noun) if it \(part.part.after.words)\(hedge)"
        }.joined(separator: ", ")
    }

    /// The answer for a client.
    var fateText: String {
        switch explanation.fate {
        case .refused: return "\(explanation.type.refusal ?? .refused)"
        case .cached: return "from the cache"
        case .stored(let index):
            let noun = parts[index].group.title
            let wait = explanation.sharedCache?.budget ?? 0
            return
                "from the shared cache, what \(noun) has said, if that comes within \(wait) ms; else \(noun) is asked"
        case .made(let answer): return "made here: \(summary(answer, age: 0))"
        case .asked(let index):
            let part = parts[index]
            let noun = part.group.title
            var text = "\(noun) is asked"
            if case .ready(let server) = part.part.standing { text += ", at \(server)" }
            switch part.part.standing {
            case .full: text += " when one of its servers has room"
            case .planExceeded: text += " when queriesPerSecond allows"
            case .waiting: text += " after the names that wait already"
            default: break
            }
            if let stale = staleText { text += "; if no server answers within 1.7 s, \(stale)" }
            return text
        case .failedLately(let answer):
            return "no server is asked for a moment, since none answered a moment ago: \(staleOr(answer))"
        case .noServer(let answer): return "there is no server to ask: \(staleOr(answer))"
        }
    }

    private func staleOr(_ answer: Answer) -> String { staleText ?? summary(answer, age: 0) }

    private var staleText: String? {
        explanation.stale.map {
            "what is stale in the \(explanation.held == nil ? "shared " : "")cache: \(summary($0, age: 0))"
        }
    }

    /// The state of a group in its turn, for programs, and why it would not be asked, for people; nil if it would.
    func words(_ standing: Explanation.Standing) -> (label: String, text: String?) {
        switch standing {
        case .ready: ("ready", nil)
        case .noServer: ("noServer", "it has no server")
        case .withoutRecord(let code):
            (
                "withoutRecord",
                "passed over: it has no record of the name\(Self.because(code)), as was found lately"
            )
        case .budgetSpent: ("budgetSpent", "passed over: too many names below the same domain had no record")
        case .planExceeded: ("planExceeded", "queriesPerSecond is reached")
        case .full: ("full", "each server has as much under way as concurrency allows")
        case .waiting: ("waiting", "names that came before it wait as well")
        case .leftOut:
            ("leftOut", "it is not asked for \(explanation.type), of which there is no record then (without)")
        case .paused: ("paused", "passed over: each server wants to be left alone for a while")
        case .down: ("down", "passed over: none of its servers answers, and another question finds out when one does")
        }
    }

    var heldText: String {
        guard whyAlone == nil else { return "not known" }
        guard let held = explanation.held else { return "nothing" }
        let answer = summary(held.answer, age: held.isFresh ? held.elapsed : 0)
        let state =
            held.isFresh
            ? "fresh for \(held.left) s more"
            : "stale, past its TTL for \(held.elapsed - held.answer.keep) s"
                + (explanation.stale == nil ? ", and not given" : "")
        let former = "\(held.audience.isOfAccounts ? "an HTTPDNS account" : "a group") that cache.file does not name"
        let origin = explanation.origin?.title ?? former
        let substitute = held.isStandIn ? "; in the place of \(debtor?.title ?? "another group")" : ""
        return "\(answer); by \(origin), \(held.elapsed) s ago; \(state)\(substitute)"
    }

    /// The first group that owes the answer for which the cached answer is a substitute; nil if it is not known.
    private var debtor: GroupView? {
        let first = parts.first { part in
            switch part.part.standing {
            case .withoutRecord, .leftOut: false
            case .noServer: part.group.isAccount
            default: true
            }
        }
        return first.flatMap { $0.group.id == explanation.origin?.id ? nil : $0.group }
    }

    /// `NOERROR: A 192.0.2.1, ttl 60`.
    func summary(_ answer: Answer, age: UInt32) -> String {
        let records = records(answer, age: age)
        let code = "\(answer.head.responseCode)"
        if records.all.isEmpty {
            guard answer.head.responseCode == .noError else { return code }
            let reason = answer.extendedErrorText
            return "\(code), no \(explanation.type)\(Self.because(reason.isEmpty ? nil : reason))"
        }
        return "\(code): \(records.all.joined(separator: "; "))"
            + (records.left > 0 ? "; and \(records.left) more" : "")
    }

    /// The first few records of the answer section, and the number of the rest.
    func records(_ answer: Answer, age: UInt32) -> (all: [String], left: Int) {
        let records = answer.records().filter { $0.section == .answer }
        let shown = records.prefix(Self.mostRecords).map { record in
            let owner = record.name == explanation.name ? "" : "\(record.name) "
            let ttl = record.ttl > age ? record.ttl - age : 0
            return Self.cut("\(owner)\(record.type) \(record.data)") + ", ttl \(ttl)"
        }
        return (shown, records.count - shown.count)
    }

    static func cut(_ text: String) -> String {
        text.count > longestRecord ? text.prefix(longestRecord) + "…" : text
    }

    /// The answer of a server, in one line.
    func text(_ said: Said) -> String {
        let time = Overview.milliseconds(said.milliseconds)
        switch said.result {
        case .notAsked(let why): return "not asked: \(why)"
        case .outcome(.failed(let failure)): return "fails after \(time): \(failure.detail)"
        case .outcome(.answer(let answer)): return "\(summary(answer, age: 0)), in \(time)"
        case .outcome(.addresses(let results, let reasons)):
            let all = addressTexts(results)
            guard !all.isEmpty else { return "no record\(Self.because(code(reasons))), in \(time)" }
            let left = all.count - Self.mostRecords
            return all.prefix(Self.mostRecords).joined(separator: "; ") + (left > 0 ? "; and \(left) more" : "")
                + ", in \(time)"
        }
    }

    /// The reason in brackets, such as ` (RRNotExist)`; empty without a reason.
    private static func because(_ reason: String?) -> String { reason.map { " (\($0))" } ?? "" }

    /// The service's own reason why the name has no address.
    func code(_ reasons: [AbsenceReason]) -> String? {
        reasons.code(of: explanation.name, Families(of: explanation.type))
    }

    func addressTexts(_ results: [NameAddresses]) -> [String] {
        [RecordType.a, .aaaa].flatMap { type in
            results.flatMap { $0.addresses(type) }.map { "\(type) \($0.0), ttl \($0.1)" }
        }
    }
}

extension Settings.Origins.Location {
    var text: String {
        switch self {
        case .file(let file, let line): "\(file):\(line)"
        case .variable(let name): "environment: \(name)"
        case .standard: "the default"
        }
    }
}

extension StepEnds {
    /// The ends of a group, in words and as in `thenTryOn`.
    private static let all: [(end: StepEnds, words: String, key: String)] = [
        (.failure, "fails", "failure"), (.refused, "refuses", "refused"), (.nxDomain, "says NXDOMAIN", "nxdomain"),
        (.noData, "has no such data", "nodata"), (.noRecord, "has no record", "norecord"),
    ]

    /// `fails or has no record`.
    var words: String { Self.all.filter { contains($0.end) }.map(\.words).joined(separator: " or ") }
    var keys: [String] { Self.all.filter { contains($0.end) }.map(\.key) }
}

extension DomainPattern {
    /// The reason for which names of a reserved pattern go to no group, or to the group for private names.
    func reserved(_ reason: ReservedName) -> String {
        switch self {
        case .singleLabels: return "single labels mean something on this network alone"
        case .network(let network):
            return "reverse names of \(network) mean something on this network alone (\(standard))"
        case .subtree(let name), .below(let name), .only(let name):
            switch reason {
            case .privateName, .singleLabel: return "\(name) is reserved (\(standard)): only this network can know it"
            case .localhost: return "\(name) is reserved (\(standard)): this machine"
            case .nonexistent, .noData: return "\(name) is reserved (\(standard))"
            }
        }
    }

    /// The RFC that reserves the name.
    private var standard: String {
        switch description {
        case "localhost", "invalid", "test": "RFC 6761"
        case "onion": "RFC 7686"
        case "alt": "RFC 9476"
        case "internal": "by ICANN, for private use"
        case "lan": "as many routers call their network"
        case "local": "RFC 6762"
        case "home.arpa": "RFC 8375"
        case "ipv4only.arpa": "RFC 7050"
        case "resolver.arpa": "RFC 9462"
        case "use-application-dns.net": "the canary by which browsers ask whether to go past the network's resolver"
        default: "RFC 6303"
        }
    }
}
