internal import Base
internal import DNSWire

/// What the demo's servers of DNS answer: addresses of a documentation name that its HTTPDNS service does not know, and for
/// the rest what the machine's own resolver says. Confined to its loop.
final class DemoResolver {
    /// Asked for what is not known here; `done` is called once, now or later, with nil if there is no answer.
    typealias Ask = (_ query: SystemQuery, _ done: @escaping (Answer?) -> Void) -> Void

    private let zone = DemoZone.resolver
    private let ask: Ask?

    /// - Parameter ask: Without it there is no answer to any other question.
    init(ask: Ask?) { self.ask = ask }

    /// Answers one message.
    /// - Parameter done: Called once, now or later; nil: it is no query, and gets no answer.
    func answer(_ message: [UInt8], done: @escaping ([UInt8]?) -> Void) {
        switch Question.read(message.span) {
        case .silence: done(nil)
        case .refuse(let code, let question): done(Self.refusal(code, question, message))
        case .cookieQuery(let question): done(Self.refusal(.noError, question, message))
        case .question(let question):
            let query = SystemQuery(question, message)
            if let answer = zone.answer(query) { return done(Self.reply(answer, question, message)) }
            guard let ask else { return done(Self.refusal(.servFail, question, message)) }
            ask(query) { answer in
                done(
                    answer.map { Self.reply($0, question, message) } ?? Self.refusal(.servFail, question, message))
            }
        }
    }

    private static func reply(_ answer: Answer, _ question: Question, _ message: [UInt8]) -> [UInt8] {
        var reply = [UInt8](repeating: 0, count: answer.body.count + Reply.maximumRefusalLength)
        var room = reply.mutableSpan
        let length = Reply.write(
            answer, age: .elapsed(0), to: question, query: message.span, limit: Int(UInt16.max), into: &room)
        return Array(reply.prefix(length))
    }

    private static func refusal(_ code: ResponseCode, _ question: Question?, _ message: [UInt8]) -> [UInt8] {
        var reply = [UInt8](repeating: 0, count: Reply.maximumRefusalLength)
        var room = reply.mutableSpan
        let length = Reply.refuse(code, question: question, query: message.span, into: &room)
        return Array(reply.prefix(length))
    }
}

/// What the machine's resolver is asked.
struct SystemQuery {
    let name: Name
    let type: RecordType
    let recordClass: RecordClass
    let dnssecOK: Bool
    let checkingDisabled: Bool
    let hasEDNS: Bool

    /// - Parameter message: That from which the question was read.
    init(_ question: Question, _ message: [UInt8]) {
        name = question.name(in: message.span)
        (type, recordClass) = (question.type, question.recordClass)
        (dnssecOK, checkingDisabled) = (question.dnssecOK, question.checkingDisabled)
        hasEDNS = question.edns != nil
    }

    func message(id: UInt16) -> [UInt8] {
        Query.message(
            id: id, name, type: type, recordClass: recordClass, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled,
            hasEDNS: hasEDNS)
    }
}
