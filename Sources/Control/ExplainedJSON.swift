import Base
import Configuration
import DNSCache
import DNSWire
import Forwarding
import Names

/// The explanation for programs: what `httpdnsd explain --json` prints. Keys are added, never changed.
extension Explained {
    var json: JSON {
        .object([
            ("name", .string("\(explanation.name)")),
            ("type", .string("\(explanation.type)")),
            ("source", sourceJSON),
            ("rule", ruleJSON),
            ("reason", .string(reasonLabel)),
            ("reasonText", reasonText.map { .string($0) } ?? .null),
            ("cache", heldJSON),
            ("sharedCache", storeJSON),
            ("now", fateJSON),
            ("privateAddresses", .string(explanation.refusesPrivate ? "refuse" : "pass")),
            ("ranking", rankingJSON),
            ("groups", .array(parts.map(partJSON))),
            ("advice", advice.map { .string($0) } ?? .null),
        ])
    }

    private var sourceJSON: JSON {
        switch source {
        case .daemon: .object([("daemon", .bool(true)), ("why", .null)])
        case .configuration(let why): .object([("daemon", .bool(false)), ("why", .string(why))])
        }
    }

    private var ruleJSON: JSON {
        .object(
            [
                ("pattern", explanation.rule.pattern.map { .string($0.description) } ?? .null),
                ("group", explanation.taker.map { .string($0.name) } ?? .null),
                ("text", .string(ruleText)),
                ("exception", exceptionText.map { .string($0) } ?? .null),
                ("key", rule.map { .string($0.key) } ?? .null),
            ] + (rule?.place ?? .standard).json)
    }

    private var reasonLabel: String {
        if explanation.fate == .refused { return "refused" }
        return switch explanation.reason {
        case .localhost: "localhost"
        case .nonexistent: "nonexistent"
        case .noData: "noData"
        case .any: "any"
        case .hosts: "hosts"
        case .familyLeftOut: "familyLeftOut"
        case .addresses: "addresses"
        case .serviceBinding: "serviceBinding"
        case .localName: "localName"
        case .singleLabel: "singleLabel"
        case .notHostname: "notHostname"
        case .type: "type"
        }
    }

    private var heldJSON: JSON {
        guard let held = explanation.held else { return .null }
        let age = held.isFresh ? held.elapsed : 0
        return .object(
            answerJSON(held.answer, age: age) + [
                ("fresh", .bool(held.isFresh)),
                ("ageSeconds", .integer(UInt64(held.elapsed))),
                ("ttlSeconds", .integer(UInt64(held.left))),
                ("saidBy", explanation.teller.map { .string($0.name) } ?? .null),
                ("inPlaceOfHTTPDNS", .bool(held.isStandIn)),
            ])
    }

    private var rankingJSON: JSON {
        guard let ranking = explanation.ranking else { return .null }
        return .object([("port", .integer(UInt64(ranking.port))), ("known", .bool(ranking.isKnown))])
    }

    private var fateJSON: JSON {
        var members: [(String, JSON)] = []
        func add(_ how: String, _ answer: Answer? = nil, age: UInt32 = 0) {
            members.append(("how", .string(how)))
            if let answer { members += answerJSON(answer, age: age) }
        }
        switch explanation.fate {
        case .refused:
            members = [("how", .string("refused")), ("rcode", .string("\(explanation.type.refusal ?? .refused)"))]
        case .cached: add("cached", explanation.held?.answer, age: explanation.held?.elapsed ?? 0)
        case .made(let answer): add("made", answer)
        case .failedLately(let answer), .nobody(let answer):
            add(explanation.stale == nil ? "failure" : "stale", explanation.stale?.answer ?? answer)
        case .stored(let place):
            if case .entry(.answer(let answer), let elapsed, _)? = parts[place].part.stored {
                add("stored", answer, age: elapsed)
            }
            members.append(("group", .string(parts[place].group.name)))
        case .asked(let place):
            add("asked")
            members.append(("group", .string(parts[place].group.name)))
            if case .ready(let server) = parts[place].part.standing {
                members.append(("server", .string("\(server)")))
            }
        }
        return .object(members + [("text", .string(fateText))])
    }

    func answerJSON(_ answer: Answer, age: UInt32) -> [(String, JSON)] {
        let records = records(answer, age: age)
        return [
            ("rcode", .string("\(answer.head.responseCode)")),
            ("records", .array(records.all.map { .string($0) })),
            ("recordsLeftOut", .integer(UInt64(records.left))),
        ]
    }

    private func partJSON(_ part: Part) -> JSON {
        // Those of the groups before it have taken their share of what is shown.
        let before = parts.prefix(part.place).reduce(0) { $0 + $1.group.servers.count }
        let servers = part.group.servers.prefix(max(0, Self.mostServers - before))
        return .object([
            ("name", .string(part.group.name)),
            ("kind", .string(part.group.isAccount ? "httpdns" : "dns")),
            ("after", part.place == 0 ? .null : .array(part.part.after.keys.map { .string($0) })),
            ("hedgeAfterMilliseconds", part.part.hedgeAfter.map { .integer(UInt64($0)) } ?? .null),
            ("standing", .string(part.part.standing.label)),
            ("shared", .bool(part.part.group.isShared)),
            ("servers", .array(servers.enumerated().map { serverJSON($1, at: $0, of: part) })),
            ("serversLeftOut", .integer(UInt64(part.group.servers.count - servers.count))),
        ])
    }

    private func serverJSON(_ server: ServerView, at place: Int, of part: Part) -> JSON {
        .object([
            ("address", .string(server.address)),
            ("protocol", .string(server.proto)),
            ("state", .string(server.standing.rawValue)),
            ("says", part.said.indices.contains(place) ? saidJSON(part.said[place]) : .null),
        ])
    }

    private func saidJSON(_ said: Said) -> JSON {
        var members: [(String, JSON)] = []
        switch said.result {
        case .notAsked(let why): members = [("result", .string("notAsked")), ("reason", .string(why))]
        case .outcome(.failed(let failure)):
            members = [("result", .string("failure")), ("reason", .string(failure.detail))]
        case .outcome(.answer(let answer)):
            members = [("result", .string("answer"))] + answerJSON(answer, age: 0)
        case .outcome(.addresses(let results)):
            let all = addressTexts(results)
            members = [
                ("result", .string(all.isEmpty ? "noRecord" : "addresses")),
                ("records", .array(all.prefix(Self.mostRecords).map { .string($0) })),
                ("recordsLeftOut", .integer(UInt64(max(0, all.count - Self.mostRecords)))),
            ]
        }
        if said.wasAsked { members.append(("milliseconds", .number(said.milliseconds))) }
        return .object(members)
    }
}

extension Explanation.Standing {
    fileprivate var label: String {
        switch self {
        case .ready: "ready"
        case .noServer: "noServer"
        case .withoutRecord: "withoutRecord"
        case .budgetSpent: "budgetSpent"
        case .planExceeded: "planExceeded"
        case .full: "full"
        case .waiting: "waiting"
        case .paused: "paused"
        }
    }
}

extension Settings.Origins.Place {
    fileprivate var json: [(String, JSON)] {
        switch self {
        case .file(let file, let line):
            [("file", .string(file)), ("line", .integer(UInt64(line))), ("variable", .null)]
        case .variable(let name): [("file", .null), ("line", .null), ("variable", .string(name))]
        case .standard: [("file", .null), ("line", .null), ("variable", .null)]
        }
    }
}
