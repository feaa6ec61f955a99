import Base
import DNSCache
import DNSWire
import Foundation
import TestSupport

@testable import Forwarding

extension Words {
    mutating func type() -> RecordType? { next(as: RecordType.init(parsing:)) }
}

extension [UInt8] {
    /// A query with its name's letters as spelled.
    func spelled(_ spelling: String) -> [UInt8] {
        guard spelling != ".", !spelling.contains("\\") else { return self }
        var query = self
        var at = 12
        for label in spelling.split(separator: ".") {
            query.replaceSubrange(at + 1...at + label.utf8.count, with: label.utf8)
            at += 1 + label.utf8.count
        }
        return query
    }

    /// A query with or without RD.
    func withRecursion(_ isDesired: Bool) -> [UInt8] {
        var query = self
        query[2] = isDesired ? query[2] | 1 : query[2] & ~1
        return query
    }

    /// The content of a reply to this query, in the words of a scenario.
    func reading(_ reply: ArraySlice<UInt8>) -> String {
        let reply = Array(reply)
        guard case .question(let question) = Question.read(span) else { return "a reply to nothing" }
        let name = question.name(in: span)
        guard reply.count > question.end, reply[12..<question.end] == self[12..<question.end],
            let read = try? Response.read(
                reply.span, id: question.id, to: name, type: question.type, defaultNegativeTTL: 0)
        else { return "an unreadable reply" }
        return ScenarioAnswer.said(read.answer) + (read.truncated ? " TC" : "")
    }
}

enum ScenarioAnswer {
    /// An answer in the words of a scenario.
    static func said(_ answer: Answer) -> String {
        let records = answer.records()
        let answers = records.filter { $0.section == .answer }
        var words = [answer.head.responseCode.description]
        if answers.isEmpty, answer.head.responseCode == .noError { words.append("none") }
        for record in answers {
            words.append(record.type == .a || record.type == .aaaa ? record.data : "\(record.type) \(record.data)")
        }
        for ttl in Set(answers.map(\.ttl)).sorted() { words.append("ttl \(ttl)") }
        for record in records where record.section == .authority {
            words.append("\(record.type == .soa ? "soa" : "\(record.type)") \(record.ttl)")
        }
        if answer.head.authenticData { words.append("AD") }
        for error in answer.extendedErrors { words.append("EDE \(error.rawValue)") }
        return words.joined(separator: " ")
    }

    /// The answer of a group that carries messages.
    static func answer(_ text: String, _ question: MessageQuestion) -> Answer? {
        var words = Words(text.split(separator: " ").map(String.init))
        let (name, type) = (question.name, question.type)
        var answer: Answer
        switch words.next() {
        case "NOERROR":
            if words.skip("none") {
                if words.skip("soa") {
                    guard let ttl = words.number() else { return nil }
                    answer = .noData(name, type: type, negativeTTL: UInt32(ttl))
                } else {
                    answer = .failure(name, type: type, .noError, extendedError: nil)
                }
                break
            }
            guard let made = records(&words, name, type) else { return nil }
            answer = made
        case "NXDOMAIN":
            guard words.skip("soa"), let ttl = words.number() else { return nil }
            answer = .nxDomain(name, type: type, negativeTTL: UInt32(ttl))
        case "SERVFAIL": answer = .failure(name, type: type, .servFail, extendedError: nil)
        case "YXDOMAIN": answer = .failure(name, type: type, .yxDomain, extendedError: nil)
        case "REFUSED": answer = .failure(name, type: type, .refused, extendedError: nil)
        default: return nil
        }
        answer.head.authenticData = words.skip("AD")
        while words.skip("EDE") {
            guard let code = words.number() else { return nil }
            answer.add(ExtendedError(rawValue: UInt16(code)))
        }
        return words.isEmpty ? answer : nil
    }

    /// `192.0.2.1 … ttl 60` or `TXT hello ttl 60`: the text is data that the forwarder does not read.
    private static func records(_ words: inout Words, _ name: Name, _ type: RecordType) -> Answer? {
        var addresses: [IPAddress] = []
        var data: [UInt8] = []
        if words.skip("DATA") {
            guard let octets = words.next().flatMap({ Hexadecimal.decode(Array($0.utf8).span) }) else { return nil }
            data = octets
        } else if words.skip("TXT") {
            guard let text = words.next() else { return nil }
            data = [UInt8(text.utf8.count)] + text.utf8
        }
        while data.isEmpty, !words.skip("ttl") {
            guard let address = words.next().flatMap({ IPAddress($0) }) else { return nil }
            addresses.append(address)
        }
        if !data.isEmpty { guard words.skip("ttl") else { return nil } }
        guard let ttl = words.number().map({ UInt32($0) }) else { return nil }
        guard !data.isEmpty else { return .addresses(name, type: type, addresses, ttl: ttl) }
        var answer = Answer.failure(name, type: type, .noError, extendedError: nil)
        answer.body += [0xC0, 0x0C, UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF), 0, 1]
        for shift: UInt32 in [24, 16, 8, 0] { answer.body.append(UInt8(truncatingIfNeeded: ttl >> shift)) }
        answer.body += [0, UInt8(data.count)] + data
        answer.head.answerCount = 1
        answer.keep = ttl
        answer.isCacheable = true
        return answer
    }

    /// The answer of HTTPDNS for all names, or for each given name; `because` tells why names have no IPv4 address.
    static func results(_ text: String, names: [Name]) -> ([NameAddresses], [AbsenceReason])? {
        let parts = text.components(separatedBy: " because ")
        let reasons = parts.dropFirst().flatMap { code in
            names.compactMap { AbsenceReason($0, .ipv4, code: Array(code.utf8)) }
        }
        return results(ofParts: parts[0], names: names).map { ($0, reasons) }
    }

    private static func results(ofParts text: String, names: [Name]) -> [NameAddresses]? {
        if text == "nothing" { return [] }
        guard text.contains("=") else { return names.compactMap { result($0, text) }.orNil(names.count) }
        let parts = text.split(separator: ";").map { $0.split(separator: "=").map { $0.split(separator: " ") } }
        return parts.compactMap { sides in
            guard sides.count == 2, sides[0].count == 1, let name = Name(String(sides[0][0])) else { return nil }
            return result(name, sides[1].joined(separator: " "))
        }.orNil(parts.count)
    }

    private static func result(_ name: Name, _ text: String) -> NameAddresses? {
        if text == "none" { return NameAddresses(name: name, ipv4: .noRecord, ipv6: .noRecord) }
        let words = text.split(separator: " ")
        let addresses = words.dropLast(2).compactMap { IPAddress($0) }
        guard words.count == addresses.count + 2, words[words.count - 2] == "ttl",
            let ttl = UInt32(words[words.count - 1])
        else { return nil }
        func family(_ isIPv4: Bool) -> FamilyAddresses {
            let those = addresses.filter { $0.isIPv4 == isIPv4 }
            return those.isEmpty ? .noRecord : .addresses(those, ttl: ttl)
        }
        return NameAddresses(name: name, ipv4: family(true), ipv6: family(false))
    }
}

extension Array {
    fileprivate func orNil(_ expected: Int) -> Self? { count == expected ? self : nil }
}

extension Failure {
    /// `too often retry 30` and the like.
    init?(scenario text: String) {
        let parts = text.components(separatedBy: " retry ")
        guard let kind = Failure.Kind.words.first(where: { $0.value == parts[0] })?.key else { return nil }
        self.init(kind, parts[0], retryAfter: parts.count > 1 ? Int(parts[1]) : nil)
        guard parts.count == 1 || retryAfter != nil else { return nil }
    }
}

extension Families {
    init?(scenario text: String) {
        switch text {
        case "ipv4": self = .ipv4
        case "ipv6": self = .ipv6
        case "dual": self = .both
        default: return nil
        }
    }
}

extension Failure.Kind {
    static let words: [Failure.Kind: String] = [
        .timedOut: "timeout", .unreachable: "refused", .untrusted: "untrusted", .unauthorized: "unauthorized",
        .tooOften: "too often", .badAnswer: "bad answer", .refusedTogether: "names", .insecure: "insecure",
        .denied: "denied", .here: "here",
    ]
}

extension GroupID: CustomStringConvertible {
    init?(scenario word: String) {
        guard let number = Self.words.firstIndex(of: word) else { return nil }
        self.init(number)
    }

    /// The names of groups by number.
    static let words = ["httpdns", "fallback", "office", "partner", "backup", "spare", "resolvers", "private"]

    /// The number of a group that was of another kind before, under the same name.
    var ofOtherKind: GroupID { GroupID(rawValue + Self.words.count) }

    public var description: String { Self.words[rawValue % Self.words.count] }
}

extension [Server] {
    /// The servers of a scenario are told by their position in their list; each list has a port of its own.
    static func scenario(_ count: Int, list: Int) -> Self {
        (0..<count).map { Server(Endpoint(.v4(192, 0, 2, UInt8($0 + 1)), port: UInt16(list))) }
    }
}

extension Server {
    var position: Int { Int(endpoints[0].address.low & 0xFF) }

    /// `httpdns` or `httpdns 2`: the first goes without saying.
    func label(_ group: GroupID) -> String { position == 1 ? "\(group)" : "\(group) \(position)" }
}

extension Answerer {
    /// In a scenario's words: `cache`, or the group and the position of its server.
    var said: String {
        switch self {
        case .cache: "cache"
        case .stale: "stale"
        case .daemon: "daemon"
        case .server(let group, let server): server.label(group)
        case .sharedCache(let group): "the store for \(group)"
        case .group(let group): "\(group) itself"
        case .noServer: "nobody"
        }
    }
}

extension Ask {
    /// The question in the words of a scenario.
    var said: String {
        switch self {
        case .addresses(let names, let families):
            names.map(\.description).joined(separator: " ")
                + (families == .both ? "" : families == .ipv4 ? " ipv4" : " ipv6")
        case .message(let question):
            "\(question.name) \(question.type)" + (question.dnssecOK ? " dnssec" : "")
                + (question.checkingDisabled ? " cd" : "")
        }
    }

    func speaks(of name: Name?, _ type: RecordType?) -> Bool {
        switch self {
        case .addresses(let names, _): name.map(names.contains) ?? true
        case .message(let question):
            (name ?? question.name) == question.name && (type ?? question.type) == question.type
        }
    }
}

extension Event {
    var said: String {
        switch self {
        case .failing(let group, let server, let failure):
            "\(group) \(server.position) fails \(Failure.Kind.words[failure.kind]!)"
        case .answersAgain(let group, let server): "\(group) \(server.position) answers again"
        case .switched(let group, let from, let to): "\(group) switched from \(from.position) to \(to.position)"
        case .returned(let group, let from, _): "\(group) returned from \(from.position)"
        case .planExceeded: "plan exceeded"
        case .noRecordBudgetSpent(_): "no-record budget spent"
        case .privateRefused: "private refused"
        case .mayLoop(let group, let server): "\(group) \(server.position) may loop"
        case .short: "short"
        case .leftToValidators(let account, let asked): "validators of \(account) ask \(asked)"
        case .sharedCacheOff(let why): "shared cache off: \(why)"
        case .sharedCacheOn: "shared cache on"
        case .sharedCacheTakesNothing(let why): "shared cache takes nothing: \(why)"
        case .sharedCacheTakesAgain: "shared cache takes again"
        case .sharedCacheClock: "shared cache clock"
        case .refusing(.tooManyFlights): "refusing too many flights"
        case .refusing(.tooManyWaiting): "refusing too many waiting"
        }
    }
}

extension AbnormalLookup {
    var said: String {
        let end = fellBack ? "fell back" : "at httpdns \(server.map { "\($0.position)" } ?? "none")"
        let reason = failure.map { Failure.Kind.words[$0.kind]! } ?? "plan exceeded"
        return names.map(\.description).joined(separator: " ") + ": \(reason), \(end), \(spend) ms"
    }
}
