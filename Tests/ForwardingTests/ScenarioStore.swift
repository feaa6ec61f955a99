import Base
import DNSCache
import DNSWire
import TestSupport

@testable import Forwarding

/// The store of a fleet, in the words of a scenario. With `set shared true` it is in use from the start.
extension ScenarioRunner {
    struct Look {
        var id: SharedReadID
        var question: SharedQuestion
    }

    /// Seconds since 1970.
    private var wall: UInt64 { 1_700_000_000 + now.nanoseconds / 1_000_000_000 }

    func said(_ action: SharedAction) -> [String] {
        switch action {
        case .dial: return ["\(Said.store) dial"]
        case .hangUp: return ["\(Said.store) hang up"]
        case .read(let id, let question):
            looks.append(Look(id: id, question: question))
            return ["\(Said.store) read \(question.said)"]
        case .claim(let id, let question):
            looks.append(Look(id: id, question: question))
            return ["\(Said.store) claim \(question.said)"]
        case .write(let question, let content, _, _): return ["\(Said.store) write \(question.said) \(content.said)"]
        case .delete(let questions):
            let counts = Dictionary(grouping: Set(questions), by: \.group).sorted { $0.key.rawValue < $1.key.rawValue }
            return ["\(Said.store) delete" + counts.map { " \($0.key) \($0.value.count)" }.joined()]
        case .lookForGeneration, .beginGeneration: return []
        }
    }

    /// A line `store …`.
    func tellStore(_ words: inout Words) throws(ScenarioFailure) {
        isTurnOpen = true
        defer { collect() }
        if words.skip("is") {
            // Requests on the earlier connection get no answer any more.
            looks = []
            switch words.next() {
            case "lost": return forwarder.handle(.lost("closed by the store"), wall: wall, at: now)
            case "connected": return forwarder.handle(.connected, wall: wall, at: now)
            default: throw malformed()
            }
        }
        let name = words.skip("for") ? words.next().flatMap { Name($0) } : nil
        let type = name == nil ? nil : words.type()
        guard
            let at = looks.firstIndex(where: {
                (name == nil || $0.question.name == name) && (type == nil || $0.question.type == type)
            })
        else { throw failure("no such look is under way") }
        let look = looks.remove(at: at)
        let verb = words.next()
        let rest = words.rest
        let event: SharedEvent
        switch (verb, rest) {
        case ("has", _):
            guard let finding = finding(rest, look.question) else { throw malformed() }
            event = .found(look.id, finding)
        case ("gives", "the lease"): event = .claimed(look.id, true)
        case ("refuses", "the lease"): event = .claimed(look.id, false)
        case ("fails", _): event = .failed(look.id, rest)
        default: throw malformed()
        }
        forwarder.handle(event, wall: wall, at: now)
    }

    private func finding(_ text: String, _ question: SharedQuestion) -> SharedFinding? {
        if text == "nothing" { return .nothing }
        var words = Words(text.split(separator: " ").map(String.init))
        let isStaleCopy = words.skip("a") && words.skip("copy") && words.skip("of")
        let parts = words.rest.split(separator: " ").map(String.init)
        guard parts.count > 2, parts[parts.count - 2] == "since", let age = parts.last!.duration else { return nil }
        let what = parts.dropLast(2).joined(separator: " ")
        var (content, lifetime) = (SharedContent.noRecord, UInt32(30))
        if what != "no record" {
            let message = MessageQuestion(name: question.name, type: question.type)
            let text = what.hasPrefix("NXDOMAIN") ? what : "NOERROR \(what)"
            guard let answer = ScenarioAnswer.answer(text, message) else { return nil }
            (content, lifetime) = (.answer(answer), answer.keep)
        }
        let entry = SharedEntry(content, stored: wall - age / 1_000_000_000, lifetime: lifetime)
        return .entry(entry, isStaleCopy: isStaleCopy)
    }
}

extension SharedQuestion {
    fileprivate var said: String { "\(group) \(name) \(type)" }
}

extension SharedContent {
    fileprivate var said: String {
        switch self {
        case .answer(let answer): ScenarioAnswer.said(answer)
        case .noRecord: "no record"
        }
    }
}
