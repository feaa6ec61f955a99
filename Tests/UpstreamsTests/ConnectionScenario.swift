import Base
import Forwarding
import Foundation
import Streams
import TestSupport
import Transport

@testable import Upstreams

/// Runs a scenario of the connections to one server, in the language of `Scenarios/README.md`.
final class ConnectionScenario {
    private let file: String
    private let text: String
    private var line = 0
    private var plan: ConnectionPlan
    private var now = ConnectionScenario.start
    /// Actions not yet expected, in the words of an expectation.
    private var unexpected: [String] = []
    private var numbers = Numbers()
    private var queries: [String: QueryNumber] = [:]
    /// The queries that the plan must have forgotten.
    private var ended: Set<QueryNumber> = []
    /// The connections in the order in which they were dialled.
    private var connections: [ConnectionNumber] = []

    /// The words with which a line without a time begins.
    enum Setting: String, CaseIterable { case server, set }

    /// The keys of `set`.
    enum Key: String, CaseIterable {
        case atOnce, connections, idleTime, mostConnections, queriesPerConnection, usualIdle
    }

    /// The kinds of servers.
    enum Kind: String, CaseIterable {
        case dot = "DoT"
        case doh = "DoH"
        case tcp = "TCP"
        case httpdns = "HTTPDNS"
    }

    /// The words that can follow a line's time.
    enum Subject: String, CaseIterable { case ask, cancel, overdue, race, connection, network, server, expect }

    /// The events of a connection.
    enum Verb: String, CaseIterable {
        case isMade = "is made"
        case cannotBeMade = "cannot be made"
        case cannotBeMadeHere = "cannot be made here"
        case answers
        case answersWrongly = "answers wrongly"
        case cannotRead = "cannot read"
        case refuses
        case fails = "fails"
        case givesUp = "gives up"
        case says = "says something"
        case takes
        case goesAway = "goes away"
        case keepsIdle = "keeps idle"
        case doesNotTake = "does not take"
        case closes, resets
        case resetsInAnswer = "resets within an answer"
        case breaksOff = "breaks off"
        case breaksProtocol = "breaks the protocol"
    }

    /// The words for actions.
    enum Said: String, CaseIterable { case dial, send, cancel, close, fail, short, answered, nothing }

    /// Not zero, so that a missing moment that is taken for a moment shows.
    private static let start = Tick(nanoseconds: 1_000_000_000_000)

    init(file: String, text: String) throws {
        (self.file, self.text) = (file, text)
        var limits = Self.limits(.dot)
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            var words = Words(line.split(separator: " ").map(String.init))
            guard let setting = words.next(as: Setting.init(rawValue:)) else { continue }
            guard Self.read(setting, &words, &limits), words.isEmpty else {
                throw ScenarioFailure(file: file, line: number + 1, message: "no such setting: \(line)")
            }
        }
        plan = ConnectionPlan(limits)
    }

    private static func limits(_ kind: Kind) -> StreamLimits {
        switch kind {
        case .dot: .frames
        case .doh: .http2
        case .tcp: .oneQueryEach
        case .httpdns: .oneRequestAtATime
        }
    }

    private static func read(_ setting: Setting, _ words: inout Words, _ limits: inout StreamLimits) -> Bool {
        if setting == .server {
            guard let kind = words.next(as: Kind.init(rawValue:)) else { return false }
            limits = Self.limits(kind)
            return true
        }
        guard let key = words.next(as: Key.init(rawValue:)), let value = words.next() else { return false }
        if key == .idleTime {
            guard let time = value.duration else { return false }
            limits.idleTime = time
            return true
        }
        guard let number = Int(value) else { return false }
        switch key {
        case .atOnce: limits.atOnce = number
        case .connections: limits.connections = number
        case .mostConnections: limits.mostConnections = number
        case .queriesPerConnection: limits.queriesPerConnection = number
        case .usualIdle: limits.usualIdle = number
        case .idleTime: break
        }
        return true
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
        try expectNothing()
    }

    private func runLine(_ all: [String]) throws(ScenarioFailure) {
        var words = Words(all)
        guard let time = words.next(as: \.duration) else { throw failure("'\(all[0])' is no time") }
        try advance(to: Tick(nanoseconds: Self.start.nanoseconds + time))
        guard let subject = words.next(as: Subject.init(rawValue:)) else { throw malformed() }
        switch subject {
        case .ask:
            for label in try labels(&words) {
                let query = numbers.next()
                queries[label] = query
                plan.want(query, at: now)
                collect()
            }
        case .cancel: for label in try labels(&words) { cancel(try query(label)) }
        case .overdue: for label in try labels(&words) { cancel(try query(label), isOverdue: true) }
        case .race: for label in try labels(&words) { plan.race(try query(label), at: now) }
        case .connection: try tell(&words)
        case .network:
            guard words.next() == "changes" else { throw malformed() }
            plan.networkChanged()
        case .server:
            guard words.rest == "is removed" else { throw malformed() }
            plan.remove()
        case .expect: try expect(&words)
        }
        collect()
        guard words.isEmpty else { throw failure("'\(words.rest)' is one thing too many") }
        if let kept = ended.first(where: { plan.queries.contains($0) }) {
            throw failure("\(label(kept)) has ended and is kept")
        }
    }

    private func cancel(_ query: QueryNumber, isOverdue: Bool = false) {
        plan.cancel(query, isOverdue: isOverdue, at: now)
        ended.insert(query)
    }

    private func labels(_ words: inout Words) throws(ScenarioFailure) -> [String] {
        let labels = words.rest.split(separator: " ").map(String.init)
        guard !labels.isEmpty else { throw malformed() }
        return labels
    }

    private func query(_ label: String) throws(ScenarioFailure) -> QueryNumber {
        guard let query = queries[label] else { throw failure("\(label) was not asked") }
        return query
    }

    // MARK: Connections

    private func tell(_ words: inout Words) throws(ScenarioFailure) {
        guard let index = words.number(), 1...connections.count ~= index else { throw failure("no such connection") }
        let (number, said) = (connections[index - 1], words.rest)
        let verb = Verb.allCases.filter { said == $0.rawValue || said.hasPrefix($0.rawValue + " ") }
            .max { $0.rawValue.count < $1.rawValue.count }
        guard let verb else { throw malformed() }
        let rest = said.dropFirst(verb.rawValue.count).split(separator: " ").map(String.init)
        switch verb {
        case .answers, .answersWrongly, .cannotRead, .refuses, .fails, .givesUp:
            for label in rest { happened(verb, label, try query(label), on: number) }
            advance(number)
        case .says: advance(number)
        case .takes:
            guard rest.count == 3, let most = Int(rest[0]), rest[1...] == ["at", "once"] else { throw malformed() }
            plan.advanced(number, mostAtOnce: most, at: now)
        case .goesAway:
            plan.drain(number)
            advance(number)
        case .keepsIdle:
            guard rest.count == 2, rest[0] == "for", let time = rest[1].duration else { throw malformed() }
            plan.announced(number, idleTime: time)
        case .doesNotTake: for label in rest { plan.notTaken(try query(label), by: number, at: now) }
        case .isMade: plan.established(number, at: now)
        case .cannotBeMade: end(number, .finished)
        case .cannotBeMadeHere: plan.ended(number, .finished, Failure(.here, "short"), at: now)
        case .closes: end(number, .closedByPeer)
        case .resets: end(number, .reset(SystemError("read", code: 104)))
        case .resetsInAnswer: end(number, .reset(SystemError("read", code: 104)), hasBegun: true)
        case .breaksOff: end(number, .tooSlow)
        case .breaksProtocol: end(number, .protocolBroken("nonsense"))
        }
    }

    private func advance(_ number: ConnectionNumber) {
        let mostAtOnce = plan.connections.contains(number) ? plan.connections[number].mostAtOnce : 0
        plan.advanced(number, mostAtOnce: mostAtOnce, at: now)
    }

    private func end(_ number: ConnectionNumber, _ end: LinkEnd, hasBegun: Bool = false) {
        plan.ended(number, end, Failure(.unreachable, "ended"), hasBegun: hasBegun, at: now)
    }

    private func happened(_ verb: Verb, _ label: String, _ query: QueryNumber, on number: ConnectionNumber) {
        plan.heard(number, isAnswer: [.answers, .answersWrongly, .cannotRead].contains(verb), at: now)
        guard plan.isOn(query, number) else { return }
        switch verb {
        case .answers, .answersWrongly:
            let isSecond = plan.answered(query, on: number, isInSync: verb == .answers, at: now)
            unexpected.append("answered \(label)\(isSecond ? " second" : "")")
            ended.insert(query)
        case .cannotRead: plan.rewritten(query, on: number, at: now)
        case .refuses: plan.refused(query, on: number)
        case .fails: plan.failed(query, on: number, Failure(.badAnswer, "failed"))
        default: plan.givenUp(query, on: number, Failure(.badAnswer, "given up"), at: now)
        }
        collect()
    }

    // MARK: Time and actions

    private func advance(to moment: Tick) throws(ScenarioFailure) {
        guard moment >= now else { throw failure("time goes backwards") }
        while let next = plan.nextDeadline, next <= moment {
            if next > now { try expectNothing() }
            guard next >= now else { throw failure("a deadline has passed and nothing was done") }
            now = next
            plan.expire(at: now)
            collect()
        }
        if moment > now { try expectNothing() }
        now = moment
    }

    private func collect() {
        while let action = plan.takeAction() { unexpected.append(said(action)) }
    }

    private func said(_ action: PlanAction) -> String {
        switch action {
        case .dial(let number):
            connections.append(number)
            return "dial \(connections.count)"
        case .send(let query, let number, let wasIdle, let isRace):
            return "send \(label(query)) on \(index(number))" + (wasIdle ? " idle" : "") + (isRace ? " race" : "")
        case .cancel(let query, let number): return "cancel \(label(query)) on \(index(number))"
        case .close(let number): return "close \(index(number))"
        case .fail(let query, let failure, _):
            ended.insert(query)
            return "fail \(label(query)) \(failure.detail)"
        case .short(let query): return "short \(label(query))"
        }
    }

    private func label(_ query: QueryNumber) -> String { queries.first { $0.value == query }?.key ?? "?" }
    private func index(_ number: ConnectionNumber) -> Int { 1 + (connections.lastIndex(of: number) ?? -1) }

    /// Splits an expectation: `send a b on 1` is two actions.
    private func expect(_ words: inout Words) throws(ScenarioFailure) {
        guard let said = words.next(as: Said.init(rawValue:)) else { throw malformed() }
        guard said != .nothing else { return try expectNothing() }
        let rest = words.rest.split(separator: " ").map(String.init)
        let behind = rest.firstIndex { queries[$0] == nil && Int($0) == nil } ?? rest.endIndex
        guard behind > 0 else { throw malformed() }
        let tail = rest[behind...].map { " \($0)" }.joined()
        for subject in rest[..<behind] {
            let wanted = "\(said.rawValue) \(subject)\(tail)"
            guard let index = unexpected.firstIndex(of: wanted) else {
                let there = unexpected.isEmpty ? "nothing" : unexpected.prefix(20).joined(separator: "\n    ")
                throw failure("expected\n    \(wanted)\nbut there is\n    \(there)")
            }
            unexpected.remove(at: index)
        }
    }

    private func expectNothing() throws(ScenarioFailure) {
        guard unexpected.isEmpty else {
            let seconds = Double((now.nanoseconds - Self.start.nanoseconds) / 1_000_000) / 1000
            throw failure("not expected, at \(seconds) s:\n    \(unexpected.joined(separator: "\n    "))")
        }
    }

    private func malformed() -> ScenarioFailure { failure("not understood") }
    private func failure(_ message: String) -> ScenarioFailure {
        ScenarioFailure(file: file, line: line, message: message)
    }
}
