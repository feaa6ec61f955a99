import Base
import Configuration
import DNSCache
import DNSWire
import Forwarding
import Names

/// The explanation for programs: what `httpdnsd explain --json` prints. Keys are added, never changed.
extension Explained {
    var json: JSON {
        [
            "name": "\(explanation.name)",
            "type": "\(explanation.type)",
            "source": ["daemon": whyAlone == nil, "why": whyAlone] as JSON,
            "rule": ruleJSON,
            "reason": explanation.fate == .refused ? "refused" : explanation.reason.rawValue,
            "reasonText": reasonText,
            "cache": heldJSON,
            "sharedCache": storeJSON,
            "now": fateJSON + ["text": fateText],
            "privateAddresses": explanation.refusesPrivate ? "refuse" : "pass",
            "aliases": explanation.aliases.map { ["name": $0.name.description, "group": $0.group.name] as JSON },
            "nat64": explanation.translation.map(json),
            "ranking": explanation.ranking.map { ["port": Int($0.port), "known": $0.isKnown] as JSON },
            "groups": parts.map(json),
            "advice": advice,
        ]
    }

    private func json(_ translation: Explanation.Translation) -> JSON {
        switch translation {
        case .addresses(let prefix): ["prefix": prefix.description, "alias": JSON.null]
        case .alias(let name): ["prefix": JSON.null, "alias": name.description]
        }
    }

    private var ruleJSON: JSON {
        [
            "pattern": explanation.rule.pattern?.description, "group": explanation.taker?.name, "text": ruleText,
            "exception": exceptionText, "key": rule?.key,
        ] + (rule?.location ?? .standard).json
    }

    private var heldJSON: JSON {
        guard let held = explanation.held else { return .null }
        return json(held.answer, age: held.isFresh ? held.elapsed : 0) + [
            "fresh": held.isFresh, "ageSeconds": held.elapsed, "ttlSeconds": held.left,
            "saidBy": explanation.origin?.name, "inPlaceOfHTTPDNS": held.isStandIn,
        ]
    }

    private var fateJSON: JSON {
        func how(_ how: String, _ answer: Answer?, age: UInt32 = 0) -> JSON {
            ["how": how] + (answer.map { json($0, age: age) } ?? [:])
        }
        switch explanation.fate {
        case .refused: return ["how": "refused", "rcode": "\(explanation.type.refusal ?? .refused)"]
        case .cached: return how("cached", explanation.held?.answer, age: explanation.held?.elapsed ?? 0)
        case .made(let answer): return how("made", answer)
        case .failedLately(let answer), .noServer(let answer):
            return how(explanation.stale == nil ? "failure" : "stale", explanation.stale ?? answer)
        case .stored(let index):
            let group: JSON = ["group": parts[index].group.name]
            guard case .entry(.answer(let answer), let elapsed, _)? = parts[index].part.stored else { return group }
            return how("stored", answer, age: elapsed) + group
        case .asked(let index):
            let asked: JSON = ["how": "asked", "group": parts[index].group.name]
            guard case .ready(let server) = parts[index].part.standing else { return asked }
            return asked + ["server": "\(server)"]
        }
    }

    private func json(_ answer: Answer, age: UInt32) -> JSON {
        let records = records(answer, age: age)
        return [
            "rcode": "\(answer.head.responseCode)", "records": records.all, "recordsLeftOut": records.left,
        ]
    }

    private func json(_ part: Part) -> JSON {
        // The servers of earlier groups have used part of the limit.
        let before = parts.prefix(part.index).reduce(0) { $0 + $1.group.servers.count }
        let servers = part.group.servers.prefix(max(0, Self.mostServers - before))
        return [
            "name": part.group.name,
            "kind": part.group.kind,
            "after": part.index == 0 ? nil : part.part.after.keys,
            "hedgeAfterMilliseconds": part.part.hedgeAfter,
            "standing": words(part.part.standing).label,
            "reason": part.part.standing.code,
            "shared": part.part.group.isShared,
            "servers": servers.enumerated().map { index, server -> JSON in
                [
                    "address": server.address, "protocol": server.proto, "state": server.standing.rawValue,
                    "says": part.said.indices.contains(index) ? json(part.said[index]) : .null,
                ]
            },
            "serversLeftOut": part.group.servers.count - servers.count,
            "leftOut": part.group.leftOut.map(\.json),
        ]
    }

    private func json(_ said: Said) -> JSON {
        let time: JSON = ["milliseconds": said.milliseconds]
        switch said.result {
        case .notAsked(let why): return ["result": "notAsked", "reason": why]
        case .outcome(.failed(let failure)): return ["result": "failure", "reason": failure.detail] + time
        case .outcome(.answer(let answer)): return ["result": "answer"] + json(answer, age: 0) + time
        case .outcome(.addresses(let results, let reasons)):
            let all = addressTexts(results)
            let shown = Array(all.prefix(Self.mostRecords))
            return [
                "result": all.isEmpty ? "noRecord" : "addresses", "records": shown,
                "recordsLeftOut": all.count - shown.count, "reason": all.isEmpty ? code(reasons) : nil,
            ] + time
        }
    }

    private var storeJSON: JSON {
        guard let shared = explanation.sharedCache, let storeText else { return .null }
        return [
            "inUse": shared.isOn,
            "text": storeText,
            "waitMilliseconds": shared.isOn ? shared.budget : 0,
            "entries": parts.compactMap { part -> JSON? in
                part.part.stored.map { ["group": part.group.name] + json($0) }
            },
        ]
    }

    private func json(_ stored: Explanation.Stored) -> JSON {
        switch stored {
        case .nothing: return ["result": "nothing"]
        case .outOfTime: return ["result": "outOfTime"]
        case .unknown(let why): return ["result": "failure", "reason": why]
        case .entry(.noRecord, let elapsed, _): return ["result": "noRecord", "ageSeconds": elapsed]
        case .entry(.answer(let answer), let elapsed, let isFresh):
            return ["result": isFresh ? "fresh" : "stale"] + json(answer, age: isFresh ? elapsed : 0) + [
                "ageSeconds": elapsed, "ttlSeconds": isFresh ? answer.keep - elapsed : 0,
            ]
        }
    }
}

extension Explanation.Standing {
    /// The account's own reason for having no record of the name.
    fileprivate var code: String? { if case .withoutRecord(let code) = self { code } else { nil } }
}

extension Settings.Origins.Location {
    fileprivate var json: JSON {
        switch self {
        case .file(let file, let line): ["file": file, "line": line, "variable": JSON.null]
        case .variable(let name): ["file": JSON.null, "line": JSON.null, "variable": name]
        case .standard: ["file": JSON.null, "line": JSON.null, "variable": JSON.null]
        }
    }
}
