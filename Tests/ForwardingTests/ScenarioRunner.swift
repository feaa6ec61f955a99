import Base
import DNSCache
import DNSWire
import Foundation
import TestSupport

@testable import Forwarding

/// Runs a scenario: a text of settings and of lines `TIME SUBJECT VERB …` in the order of their times, in the language of
/// `Scenarios/README.md`.
final class ScenarioRunner {
    private let file: String
    private let text: String
    private var line = 0
    var forwarder: Forwarder
    private var cache: DNSCache
    /// The content of the cache's file that was not read yet.
    private var unread: [UInt8] = []
    private var settings = ScenarioSettings()
    private(set) var now = ScenarioRunner.start
    var isTurnOpen = false
    /// Actions not yet expected, in the words of an expectation.
    private var unexpected: [String] = []
    private var questions: [Int: [UInt8]] = [:]
    private var queries: [UnderWay] = []
    /// The trials of addresses that are under way.
    private var trials: [(id: TrialID, endpoints: [Endpoint])] = []
    /// The looks into the store that are under way.
    var looks: [Look] = []

    /// The words with which a line without a time begins.
    enum Setting: String, CaseIterable { case set, hosts, group }

    /// What can stand behind a line's time, beside the name of a group and an address with its port.
    enum Subject: String, CaseIterable {
        case each, client, daemon, settings, hosts, servers, families, network, flush, store, expect
    }

    /// The words for actions.
    enum Said: String, CaseIterable, CustomStringConvertible {
        case client, ask, cancel, connect, leave, report, store
        case askAgain = "ask again"
        case reportLookup = "report lookup"

        var description: String { rawValue }
    }

    /// Not zero, so that a missing moment that is taken for a moment shows.
    static let start = Tick(nanoseconds: 1_000_000_000_000)

    struct UnderWay {
        var id: QueryID
        var server: Int
        var ask: Ask
        var label: String
        var isGivenUp = false
    }

    init(file: String, text: String) throws {
        (self.file, self.text) = (file, text)
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let words = line.split(separator: " ").map(String.init)
            guard let first = words.first, Setting(rawValue: first) != nil else { continue }
            let failure = ScenarioFailure(file: file, line: number + 1, message: "no such setting: \(line)")
            guard settings.read(try words.expanded(orThrow: failure)) else { throw failure }
        }
        cache = settings.makeCache()
        forwarder = settings.makeForwarder(cache)
        turn { settings.start(&$0, at: now) }
    }

    func run() throws(ScenarioFailure) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        line = 1
        guard lines[0].hasPrefix("# "), lines[0].count > 20 else { throw failure("the first line says the behaviour") }
        for (number, text) in lines.enumerated() {
            line = number + 1
            let words = text.split(separator: " ").map(String.init)
            guard let first = words.first, !first.hasPrefix("#"), Setting(rawValue: first) == nil else { continue }
            try runLine(try words.expanded(orThrow: failure("what is between { and } is no range")))
        }
        endTurn()
        try expectNothing()
    }

    private func runLine(_ words: [String]) throws(ScenarioFailure) {
        guard let time = words[0].duration else { throw failure("'\(words[0])' is no time") }
        try advance(to: Tick(nanoseconds: Self.start.nanoseconds + time))
        guard words.count > 2, words[1] == Subject.each.rawValue else { return try step(Array(words[1...])) }
        let bounds = words[2].split(separator: "-").compactMap { Int($0) }
        guard bounds.count == 2, bounds[0] <= bounds[1] else { throw failure("'\(words[2])' is no range") }
        for number in bounds[0]...bounds[1] {
            try step(
                words[3...].map {
                    String($0.split(separator: "#", omittingEmptySubsequences: false).joined(separator: "\(number)"))
                })
        }
    }

    private func step(_ words: [String]) throws(ScenarioFailure) {
        var words = Words(words)
        guard let first = words.next() else { throw malformed() }
        switch Subject(rawValue: first) {
        case .expect:
            endTurn()
            let expected = words.rest
            if expected == "nothing" { return try expectNothing() }
            guard let at = unexpected.firstIndex(where: { Self.isMeant($0, by: expected) }) else {
                let there = unexpected.isEmpty ? "nothing" : unexpected.joined(separator: "\n    ")
                throw failure("expected\n    \(expected)\nbut there is\n    \(there)")
            }
            unexpected.remove(at: at)
        case .client:
            guard let client = words.next().flatMap({ Int($0) }), words.next() == "asks" else { throw malformed() }
            try ask(client, &words)
        case .daemon:
            switch words.next() {
            case "asks": try ask(nil, &words)
            case "finds": try find(&words)
            case "wonders":
                guard words.rest == "whether it is ready" else { throw malformed() }
                words = Words([])
                turn { $0.checkReadiness(at: now) }
            case "is":
                let state = words.rest
                words = Words([])
                if state == "idle" {
                    guard forwarder.flights.count == 0 else { throw failure("a question is under way") }
                    break
                }
                let found =
                    forwarder.hasLostServers
                    ? "lost" : forwarder.readiness.isInDoubt(answers: forwarder.mainAnswers) ? "in doubt" : "ready"
                guard found == state else { throw failure("the daemon is \(found)") }
            case "restarts": restart(reads: !words.skip("unread"))
            case "reads": try read(&words)
            default: throw malformed()
            }
        case .hosts:
            guard words.next() == "become", case let lines = words.rest.split(separator: " ").map(String.init),
                let hosts = settings.replaceHosts(lines)
            else { throw malformed() }
            words = Words([])
            turn { $0.change(.hosts(hosts), at: now) }
        case .flush:
            let isUnder = words.skip("under")
            guard let word = words.next(), let name = word == "all" ? .root : Name(word) else { throw malformed() }
            turn { _ = $0.forget(word == "all" ? .all : isUnder ? .under(name) : .only(name), at: now) }
        case .settings:
            guard words.next() == "become" else { throw malformed() }
            let change = words.rest.split(separator: " ").map(String.init)
            words = Words([])
            guard change.count > 1, settings.change(change, &forwarder, at: now) else { throw malformed() }
            isTurnOpen = true
            collect()
        case let subject? where [.servers, .families, .network].contains(subject): try change(subject, &words)
        case .store: try tellStore(&words)
        case nil:
            if let endpoint = Endpoint(first) {
                try connect(endpoint, &words)
            } else {
                guard GroupID(scenario: first) != nil else { throw malformed() }
                try settle(first, &words)
            }
        default: throw malformed()
        }
        guard words.isEmpty else { throw failure("'\(words.rest)' is one thing too many") }
    }

    /// Whether an action is the expected one; group, way and reason of an answer count only if the line names them.
    private static func isMeant(_ action: String, by expected: String) -> Bool {
        let (said, wanted) = (action.components(separatedBy: because), expected.components(separatedBy: because))
        guard said[0].hasPrefix(wanted[0]) else { return false }
        let more = said[0].dropFirst(wanted[0].count)
        let isWay = wanted[0].contains(" by ") && Exposure.allCases.contains { more == " \($0.said)" }
        guard more.isEmpty || more.hasPrefix(" by ") || isWay else { return false }
        return wanted.count == 1 || said.count > 1 && said[1].contains(wanted[1])
    }

    fileprivate static let because = " because "

    // MARK: Time

    private func advance(to moment: Tick) throws(ScenarioFailure) {
        guard moment >= now else { throw failure("time goes backwards") }
        if moment > now { endTurn() }
        while let next = forwarder.nextDeadline, next <= moment {
            endTurn()
            if next > now { try expectNothing() }
            now = max(now, next)
            turn { $0.expire(at: now) }
        }
        if moment > now {
            endTurn()
            try expectNothing()
        }
        now = moment
    }

    /// Tells the forwarder something, and takes what it says to that.
    private func turn(_ tell: (inout Forwarder) -> Void) {
        isTurnOpen = true
        tell(&forwarder)
        collect()
    }

    private func endTurn() {
        guard isTurnOpen else { return }
        isTurnOpen = false
        forwarder.endTurn(at: now)
        collect()
    }

    private func expectNothing() throws(ScenarioFailure) {
        guard unexpected.isEmpty else {
            let seconds = Double((now.nanoseconds - Self.start.nanoseconds) / 1_000_000) / 1000
            throw failure("not expected, at \(seconds) s:\n    \(unexpected.joined(separator: "\n    "))")
        }
    }

    // MARK: Doors

    private func ask(_ client: Int?, _ words: inout Words) throws(ScenarioFailure) {
        guard let spelling = words.next(), let name = Name(spelling),
            let type = words.next().flatMap(RecordType.init(parsing:))
        else { throw malformed() }
        let dnssecOK = words.skip("dnssec")
        let query = Query.message(
            id: UInt16(client ?? 0), name, type: type, dnssecOK: dnssecOK, checkingDisabled: words.skip("cd")
        ).spelled(spelling).withRecursion(!words.skip("norec"))
        let address = words.skip("from") ? words.next().flatMap { IPAddress($0) } : .v4(127, 0, 0, 1)
        guard let address else { throw malformed() }
        let asker = Asker(address, over: .udp, isProven: !words.skip("unproven"), source: Source(address))
        guard case .question(let question) = Question.read(query.span) else { throw malformed() }
        isTurnOpen = true
        guard let client else {
            forwarder.receive(name, type, for: Audience(of: question), from: nil, by: asker, at: now)
            return collect()
        }
        questions[client] = query
        var reply = [UInt8](repeating: 0, count: Reply.maximumUDPSize)
        var out = reply.mutableSpan
        let limit = Reply.udpLimit(question, isLoopback: true)
        switch cache.answer(
            question, cache.key(question, query: query.span), query: query.span, at: now.seconds, limit: limit,
            into: &out)
        {
        case .miss:
            forwarder.receive(
                name, type, for: Audience(of: question), from: client, by: asker,
                recursionDesired: question.recursionDesired, at: now)
        case .hit(let length): unexpected.append("\(Said.client) \(client) \(query.reading(reply[..<length]))")
        case .hitDueForRefresh(let length):
            unexpected.append("\(Said.client) \(client) \(query.reading(reply[..<length]))")
            forwarder.receive(name, type, for: Audience(of: question), from: nil, by: asker, at: now)
        }
        collect()
    }

    private var moment: DNSCache.Moment { DNSCache.Moment(wall: 0, tick: now.seconds, boot: 1) }

    /// The daemon ends, and begins with the present settings. Its work under way is lost.
    private func restart(reads: Bool) {
        unread = []
        cache.writeSnapshot(at: moment) { unread += $0 }
        queries = []
        cache = settings.makeCache()
        forwarder = settings.makeForwarder(cache)
        if reads { read() }
        turn { settings.start(&$0, at: now) }
    }

    private func read(_ words: inout Words) throws(ScenarioFailure) {
        guard words.next() == "cache.file" else { throw malformed() }
        read()
    }

    private func read() {
        let bytes = unread
        let fault = cache.restoreSnapshot(length: bytes.count, at: moment) { Array(bytes[$0]) }.fault
        precondition(fault == nil)
    }

    private func find(_ words: inout Words) throws(ScenarioFailure) {
        guard let name = words.next().flatMap({ Name($0) }), let type = words.type(), words.skip("as"),
            let client = words.number()
        else { throw malformed() }
        questions[client] = Query.message(
            id: UInt16(client), name, type: type, dnssecOK: false, checkingDisabled: false)
        turn { $0.findServer(name, type, for: client, at: now) }
    }

    private func change(_ subject: Subject, _ words: inout Words) throws(ScenarioFailure) {
        isTurnOpen = true
        defer { collect() }
        if subject == .network {
            switch words.next() {
            case "changes": return forwarder.change(.network, at: now)
            case "becomes":
                guard let word = words.next() else { throw malformed() }
                return forwarder.change(.otherNetwork(settings.replaceNetwork(word)), at: now)
            case "translates":
                let isNothing = words.skip("nothing")
                let prefix = isNothing ? nil : words.next().flatMap { Network($0) }.flatMap { NAT64Prefix($0) }
                guard isNothing || prefix != nil else { throw malformed() }
                return forwarder.change(.synthesis(prefix), at: now)
            default: throw malformed()
            }
        }
        let group = words.skip("of") ? words.next().flatMap { settings.number(of: $0) } : nil
        guard words.next() == "become", let value = words.next() else { throw malformed() }
        if let group, let count = Int(value) {
            let kept = words.skip("keeping") ? words.number() : 0
            guard let kept else { throw malformed() }
            forwarder.change(.servers(group, settings.replaceServers(of: group, count, keeping: kept)), at: now)
        } else if group == nil, let families = Families(scenario: value) {
            forwarder.change(.families([.httpdns: families]), at: now)
        } else {
            throw malformed()
        }
    }

    private func connect(_ endpoint: Endpoint, _ words: inout Words) throws(ScenarioFailure) {
        guard let verb = words.next(), ["connects", "refuses"].contains(verb) else { throw malformed() }
        guard let trial = trials.last(where: { $0.endpoints.contains(endpoint) }),
            let number = trial.endpoints.firstIndex(of: endpoint)
        else { throw failure("nobody connects to it") }
        turn { $0.tried(trial.id, number, hasAnswered: verb == "connects", at: now) }
    }

    private func settle(_ group: String, _ words: inout Words) throws(ScenarioFailure) {
        let server = words.number() ?? 1
        let name = words.skip("for") ? words.next().flatMap { Name($0) } : nil
        let type = name == nil ? nil : words.type()
        let toRepeat = words.skip("again")
        let verb = words.next()
        let isLate = words.skip("late")
        guard
            let at = queries.firstIndex(where: {
                "\($0.id.group)" == group && $0.server == server && $0.isGivenUp == isLate
                    && $0.ask.speaks(of: name, type)
            })
        else { throw failure("no such query is under way") }
        if verb == "sends" { return forwarder.wrote(queries[at].id) }
        if verb == "loses" { return forwarder.lost(queries[at].id) }
        let query = queries.remove(at: at)
        let outcome: Outcome
        switch (verb, query.ask) {
        case ("answers", .addresses(let names, _)):
            guard let (results, reasons) = ScenarioAnswer.results(words.rest, names: names) else { throw malformed() }
            outcome = .addresses(results, reasons)
        case ("answers", .message(let question)):
            guard let answer = ScenarioAnswer.answer(words.rest, question) else { throw malformed() }
            outcome = .answer(answer)
        case ("fails", _):
            guard let failure = Failure(scenario: words.rest) else { throw malformed() }
            outcome = .failed(failure)
        default: throw malformed()
        }
        words = Words([])
        turn { $0.settle(query.id, outcome, toRepeat: toRepeat, at: now) }
    }

    // MARK: Actions

    func collect() {
        for action in forwarder.takeActions() { unexpected.append(contentsOf: said(action)) }
    }

    private func said(_ action: Action) -> [String] {
        switch action {
        case .reply(let clients, let answer, let age, by: let answerer, let way):
            return clients.map { client in
                guard let query = questions[client], case .question(let question) = Question.read(query.span) else {
                    return "client \(client), who asked nothing"
                }
                var reply = [UInt8](repeating: 0, count: Reply.maximumUDPSize)
                var out = reply.mutableSpan
                let length = Reply.write(
                    answer, age: age, to: question, query: query.span,
                    limit: Reply.udpLimit(question, isLoopback: true), into: &out)
                return
                    "\(Said.client) \(client) \(query.reading(reply[..<length])) by \(answerer.said) \(way.said)\(answer.because)"
            }
        case .ask(let id, let server, let ask):
            let label = "\(server.label(id.group)) \(ask.said)"
            queries.append(UnderWay(id: id, server: server.position, ask: ask, label: label))
            return ["\(Said.ask) \(label)"]
        case .askAgain(let id):
            guard let query = queries.first(where: { $0.id == id }) else { return ["ask again an unknown query"] }
            return ["\(Said.askAgain) \(query.label)"]
        case .cancel(let id, _):
            guard let at = queries.firstIndex(where: { $0.id == id }) else { return ["cancel an unknown query"] }
            queries[at].isGivenUp = true
            return ["\(Said.cancel) \(queries[at].label)"]
        case .trial(.begin(let id, let endpoints)):
            trials.append((id, endpoints))
            return ["\(Said.connect) \(endpoints.map(\.description).joined(separator: " "))"]
        case .trial(.end(let id)):
            guard let trial = trials.first(where: { $0.id == id }) else { return ["leave an unknown trial"] }
            return ["\(Said.leave) \(trial.endpoints.map(\.description).joined(separator: " "))"]
        case .report(let event): return ["\(Said.report) \(event.said)"]
        case .shared(let action): return said(action)
        case .reportLookup(let lookup): return ["\(Said.reportLookup) \(lookup.said)"]
        }
    }

    func failure(_ message: String) -> ScenarioFailure {
        ScenarioFailure(file: file, line: line, message: message)
    }

    func malformed() -> ScenarioFailure { failure("this line is not understood") }
}

extension Exposure {
    fileprivate var said: String {
        switch self {
        case .none: "unasked"
        case .loopback: "on this machine"
        case .encrypted: "encrypted"
        case .clear: "in the clear"
        }
    }
}

extension Answer {
    /// The texts of its extended errors; empty if it has none.
    fileprivate var because: String {
        let options = body.suffix(Int(head.extendedErrorLength))
        let text = String(decoding: options.filter { (0x20..<0x7F).contains($0) }, as: UTF8.self)
        return text.isEmpty ? "" : ScenarioRunner.because + text
    }
}
