internal import DNSWire

/// The answers of the demo's DNS servers: addresses of a documentation name that the HTTPDNS service does not know, and
/// REFUSED for all other names.
enum DemoResolver {
    /// The answer to one message; nil: the message is not a query and gets none.
    static func answer(_ message: [UInt8]) -> [UInt8]? {
        switch Question.read(message.span) {
        case .silence: return nil
        case .refuse(let code, let question): return refusal(code, question, message)
        case .cookieQuery(let question): return refusal(.noError, question, message)
        case .question(let question):
            guard question.recordClass == .in,
                let answer = DemoZone.resolver.answer(question.name(in: message.span), question.type)
            else { return refusal(.refused, question, message) }
            var reply = [UInt8](repeating: 0, count: answer.body.count + Reply.maximumRefusalLength)
            var room = reply.mutableSpan
            let length = Reply.write(
                answer, age: .elapsed(0), to: question, query: message.span, limit: Int(UInt16.max), into: &room)
            return Array(reply.prefix(length))
        }
    }

    private static func refusal(_ code: ResponseCode, _ question: Question?, _ message: [UInt8]) -> [UInt8] {
        var reply = [UInt8](repeating: 0, count: Reply.maximumRefusalLength)
        var room = reply.mutableSpan
        let length = Reply.refuse(code, question: question, query: message.span, into: &room)
        return Array(reply.prefix(length))
    }
}
