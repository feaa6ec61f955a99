package import Base
package import Configuration
package import DNSWire
package import Forwarding

/// The fate of a name, the reason, and the remedy: the value that `explain` prints, as text or JSON.
package struct Explained: Sendable {
    package let explanation: Explanation
    /// Why no running daemon could be asked, so that only the configuration is explained; nil: the daemon explains.
    package var whyAlone: String?
    /// The position of the rule that gives the name to its group; nil for a name that RFCs reserve.
    package var rule: Rule?
    /// The position of the rule by which another group excludes the name.
    package var exception: Rule?
    /// The effect of a proxy in the environment on the account that takes the name.
    package var remark: String?
    /// Whether there is an HTTPDNS account.
    package var hasAccount = false
    /// The protocol of each account, by its group.
    package var accounts: [String: AccountWay] = [:]
    /// The servers that a file or key names but that are not asked, by the name of their group.
    package var leftOut: [String: [LeftOutServer]] = [:]
    package var hostsFile = ""
    /// See ``Observation/fileOption``.
    package var fileOption = ""
    /// The time of the explanation, on the clock of the groups' ticks.
    package var at = Tick(nanoseconds: 0)
    /// The results of the servers of each part, in order; empty if no server was asked.
    package var said: [[Said]] = []

    package init(_ explanation: Explanation) { self.explanation = explanation }

    /// The question to explain, and whether HTTPDNS accounts are asked as well, which bill for it.
    package typealias Question = (name: Name, type: RecordType, asksAccounts: Bool)

    /// A key that decides, with its location.
    package typealias Rule = (key: String, location: Settings.Origins.Location)

    /// The result of a server at this moment.
    package struct Said: Sendable {
        package enum Result: Sendable {
            case outcome(Outcome)
            /// The server was not asked, for this reason.
            case notAsked(String)
        }

        let result: Result
        /// How long the answer took.
        let milliseconds: Double

        package init(_ result: Result, milliseconds: Double = 0) {
            (self.result, self.milliseconds) = (result, milliseconds)
        }
    }

    /// The most records of one answer that are shown. The rest is counted.
    static let mostRecords = 8
    /// The longest text of one record, in characters.
    static let longestRecord = 100
    /// The most servers of all groups together. The rest is counted.
    package static let mostServers = 32
    /// Milliseconds for the store and all servers together, short enough for a person who waits.
    package static let longest = 4000
}

// MARK: Conclusions

extension Explained {
    struct Part {
        let part: Explanation.Part
        let group: GroupView
        let said: [Said]
        /// The index of the part in the route.
        let index: Int
    }

    var parts: [Part] {
        explanation.parts.enumerated().map { index, part in
            Part(
                part: part,
                group: GroupView(
                    part.group, of: accounts[part.group.name], leftOut: leftOut[part.group.name] ?? [], at: at),
                said: said.indices.contains(index) ? said[index] : [], index: index)
        }
    }

    /// The group that would be asked without the cache; nil: no group would be asked.
    var asked: Part? {
        switch explanation.fate {
        case .stored(let index), .asked(let index): parts[index]
        case .cached, .failedLately, .noServer:
            parts.first { !$0.part.standing.isWithoutRecord && $0.part.standing != .noServer }
        case .refused, .made: nil
        }
    }
}

extension Explained.Said {
    /// The reason for which the server gave no answer; nil: it gave an answer, or was not asked.
    var failure: String? {
        switch result {
        case .outcome(.failed(let failure)): failure.detail
        case .outcome(.answer(let answer)) where !answer.head.responseCode.isAnswer:
            "it says \(answer.head.responseCode)"
        case .outcome, .notAsked: nil
        }
    }

    var isAnswer: Bool { if case .outcome = result { failure == nil } else { false } }

    /// Whether the server's certificate was refused, or TLS could not be agreed on.
    var isUntrusted: Bool {
        guard case .outcome(.failed(let failure)) = result else { return false }
        return [.untrusted, .insecure].contains(failure.kind)
    }

    /// The records that answer a question for a type, as text without owner and TTL; empty without such an answer.
    func data(_ type: RecordType) -> Set<String> {
        switch result {
        case .outcome(.addresses(let results, _)): Set(results.flatMap { $0.addresses(type) }.map(\.0.description))
        case .outcome(.answer(let answer)) where isAnswer: answer.data(type)
        case .outcome, .notAsked: []
        }
    }

    var addresses: [IPAddress] {
        switch result {
        case .outcome(.addresses(let results, _)):
            results.flatMap { $0.addresses(.a) + $0.addresses(.aaaa) }.map(\.0)
        case .outcome(.answer(let answer)):
            answer.records().filter { $0.type == .a || $0.type == .aaaa }
                .compactMap { IPAddress(bytes: $0.rdata.span) }
        case .outcome(.failed), .notAsked: []
        }
    }
}

extension NameAddresses {
    /// The addresses of a type's family, each with its TTL.
    func addresses(_ type: RecordType) -> [(IPAddress, UInt32)] {
        guard type == .a || type == .aaaa, case .addresses(let addresses, let ttl) = type == .a ? ipv4 : ipv6 else {
            return []
        }
        return addresses.map { ($0, ttl) }
    }
}

extension Answer {
    func data(_ type: RecordType) -> Set<String> {
        Set(records().filter { $0.section == .answer && $0.type == type }.map(\.data))
    }
}
