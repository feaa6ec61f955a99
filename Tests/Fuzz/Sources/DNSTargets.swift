import Base

@testable import DNSWire

extension Target {
    /// A client's message, and every reply to it that the daemon could give.
    static let query = Target(name: "query") { message in
        switch Question.read(message.span) {
        case .silence:
            check(message.count < Header.length || message[2] & 0x80 != 0, "silence for a query")
        case .refuse(let code, let question):
            checkRefusal(code, question, message)
        case .cookieQuery(let question):
            check(question.isEmpty && question.edns!.cookieLength >= 8, "a cookie query without a cookie")
            checkRefusal(.badCookie, question, message)
        case .question(let question):
            let name = question.name(in: message.span)
            check(Name(name.description) == name, "\(name) reads otherwise than it is shown")
            checkForwarded(name, question)
            checkRefusal(.refused, question, message)
            guard question.recordClass == .in else { return }
            for answer in ownAnswers(name, question.type) {
                for limit in [Reply.minimumUDPSize, Reply.udpLimit(question, isLoopback: true), 65_535] {
                    checkReply(answer, .elapsed(0), to: question, message, limit: limit)
                }
            }
        }
    }

    /// A local resolver's answer to the question that it carries.
    static let response = Target(name: "response") { message in
        let bytes = message.span
        let id = message.count >= Header.length ? bytes.integer16(at: 0) : 0
        var (name, type, recordClass) = (Name("www.example.com")!, RecordType.a, RecordClass.in)
        if let (asked, end) = try? Name.read(bytes, at: Header.length), message.count >= end + 4 {
            name = asked
            type = RecordType(rawValue: bytes.integer16(at: end))
            recordClass = RecordClass(rawValue: bytes.integer16(at: end + 2))
        }
        guard
            let reply = try? Response.read(
                bytes, id: id, to: name, type: type, recordClass: recordClass, defaultNegativeTTL: 30)
        else { return }
        checkRead(reply, name, type, recordClass)
        var query = Query.message(
            id: id, name, type: type, recordClass: recordClass, dnssecOK: true, checkingDisabled: false)
        guard case .question(let question) = Question.read(query.span) else { fatalError("our own query") }
        for limit in [Reply.minimumUDPSize, 1232, 65_535] {
            checkReply(reply.answer, .elapsed(0), to: question, query, limit: limit)
        }
        checkReply(reply.answer, .elapsed(1000), to: question, query, limit: 65_535)
        checkReply(reply.answer, .fixed(30), to: question, query, limit: 65_535)
        if let repeats = Response.repeatsQuestion(bytes, of: query.span) {
            let section = Header.length..<question.nameEnd
            check(repeats == (message.count >= section.upperBound && message[section] == query[section]), "repeats")
        }
        _ = Query.mixCase(of: &query) { 0x5555_5555_5555_5555 }
        checkReply(reply.answer, .elapsed(0), to: question, query, limit: 65_535)
    }
}

/// One of each kind that is made here for such a question.
private func ownAnswers(_ name: Name, _ type: RecordType) -> [Answer] {
    let negative: [Answer] = [
        .nxDomain(name, type: type, negativeTTL: 30),
        .noData(name, type: type, negativeTTL: 30, extendedError: .notSupported),
        .failure(name, type: type, .servFail, extendedError: .networkError),
    ]
    switch type {
    case .a, .aaaa:
        let addresses = (0..<40).map { type == .a ? IPAddress(v4: $0) : IPAddress(v6: 1, UInt64($0)) }
        return negative + [.addresses(name, type: type, addresses, ttl: 60)]
    case .ptr: return negative + [.pointers(name, [name, Name("a.example")!], ttl: .max)]
    case .any: return negative + [.hinfo(name, ttl: 60)]
    default: return negative
    }
}

/// The daemon's own query about a name it was asked for.
private func checkForwarded(_ name: Name, _ question: Question) {
    var query = Query.message(
        id: question.id, name, type: question.type, recordClass: question.recordClass, dnssecOK: question.dnssecOK,
        checkingDisabled: question.checkingDisabled)
    let lowerCase = query
    let isMixed = Query.mixCase(of: &query) { 0x5555_5555_5555_5555 }
    check(isMixed == (query != lowerCase), "mixed letters")
    guard case .question(let forwarded) = Question.read(query.span) else { fatalError("our own query for \(name)") }
    check(forwarded.name(in: query.span) == name, "our own query is for another name")
    check(forwarded.end + EDNS.recordLength == query.count, "our own query carries more than ours")
    check(forwarded.edns?.cookieLength == 0, "a client's option goes on")
}

/// What an upstream's answer has become.
private func checkRead(_ reply: Response.Reply, _ name: Name, _ type: RecordType, _ recordClass: RecordClass) {
    var answer = reply.answer
    let records = answer.records()
    check(records.count == answer.head.recordCount, "records that cannot be read")
    for record in records {
        check(record.ttl <= RecordHeader.maximumTTL, "a TTL of \(record.ttl)")
        check(record.type != .opt && record.type != .tsig, "hop by hop")
        _ = record.data
    }
    if answer.isCacheable, let least = records.map(\.ttl).min() { check(answer.keep <= least, "kept too long") }
    check(answer.isCacheable || answer.keep == 0, "kept though it is no answer")
    check(!reply.truncated || records.isEmpty, "half an RRset")
    if recordClass == .in {
        let message = [UInt8](repeating: 0xEE, count: Header.length) + answer.body
        let stored = try? StoredAnswer.check(message.span, answer.head)
        check(stored == StoredAnswer.Question(nameLength: name.wire.count, type: type), "cannot be stored")
        checkFiltered(answer, name, type)
        checkMade(answer, name, type)
    }
    answer.clampTTLs(minimum: 10, maximum: 100)
    check(answer.records().allSatisfy { (10...100).contains($0.ttl) }, "clamped")
    check(!answer.isCacheable || (10...100).contains(answer.keep), "keep is not clamped")
}

/// What is made of it for a network without IPv4 is an answer, too.
private func checkMade(_ answer: Answer, _ name: Name, _ type: RecordType) {
    let absence = Answer.noData(name, type: .aaaa, negativeTTL: 30)
    let made: (Answer, RecordType, Name)? =
        switch type {
        case .a: answer.synthesized(under: .wellKnown, after: absence).map { ($0, .aaaa, name) }
        case .ptr: answer.aliased(from: Name("a.example")!).map { ($0, .ptr, Name("a.example")!) }
        default: nil
        }
    guard let (made, type, name) = made else { return }
    let message = [UInt8](repeating: 0xEE, count: Header.length) + made.body
    let stored = try? StoredAnswer.check(message.span, made.head)
    check(stored == StoredAnswer.Question(nameLength: name.wire.count, type: type), "what is made cannot be stored")
    check(made.records().count == made.head.recordCount, "what is made cannot be read")
    if type == .aaaa { check(made.answersToTheType > 0 && made.keep <= min(answer.keep, 30), "nothing is made") }
}

/// Without some addresses it is an answer still, and they are gone.
private func checkFiltered(_ answer: Answer, _ name: Name, _ type: RecordType) {
    let kinds: [(IPAddress) -> Bool] = [\.isPrivate, \.isIPv4, { _ in true }]
    for isUnwanted in kinds {
        guard let rest = answer.without(isUnwanted) else { continue }
        check(rest.without(isUnwanted) == nil, "an address stays")
        check(rest.head.recordCount < answer.head.recordCount && !rest.head.authenticData, "nothing is taken out")
        check(rest.records().count == rest.head.recordCount, "records that cannot be read without addresses")
        let message = [UInt8](repeating: 0xEE, count: Header.length) + rest.body
        let stored = try? StoredAnswer.check(message.span, rest.head)
        check(
            stored == StoredAnswer.Question(nameLength: name.wire.count, type: type),
            "cannot be stored without addresses")
    }
}

/// A reply has to be one that our own reader takes for the same answer.
private func checkReply(
    _ answer: Answer, _ age: Reply.Age, to question: Question, _ query: [UInt8], limit: Int
) {
    var out = [UInt8](repeating: 0xEE, count: limit)
    var room = out.mutableSpan
    let length = Reply.write(answer, age: age, to: question, query: query.span, limit: limit, into: &room)
    check(length >= Header.length && length <= limit, "\(length) octets with a limit of \(limit)")
    out.removeLast(limit - length)
    check(out[Header.length..<question.end] == query[Header.length..<question.end], "another question")
    check(out[2] & 0x80 == 0x80 && out[2] & 0x04 == 0 && out[3] & 0xC0 == 0x80, "header's flags")
    let read: Response.Reply
    do throws(WireError) {
        read = try Response.read(
            out.span, id: question.id, to: question.name(in: query.span), type: question.type,
            recordClass: question.recordClass, defaultNegativeTTL: 30)
    } catch {
        fatalError("our own reply: \(error)")
    }
    if read.truncated {
        check(limit < 65_535 && read.answer.head.recordCount == 0, "TC")
        return
    }
    let (head, expected) = (read.answer.head, answer.head)
    check(head.responseCode == expected.responseCode, "another response code")
    check(head.answerCount == expected.answerCount, "answers are lost")
    check(head.authorityCount == expected.authorityCount, "authorities are lost")
    check(head.additionalCount == expected.additionalCount || head.additionalCount == 0, "half an additional section")
    if question.edns != nil {
        check(answer.extendedErrors.starts(with: read.answer.extendedErrors), "extended errors")
        check(limit < 65_535 || read.answer.extendedErrors == answer.extendedErrors, "extended errors are lost")
    }
    check(head.authenticData == (expected.authenticData && question.wantsAuthenticData), "AD")
    if head.additionalCount == expected.additionalCount, case .elapsed(0) = age {
        check(read.answer.bodyOfRecords == answer.bodyOfRecords, "other records")
        // A class other than IN, and what was made here for a name that is not the owner, is not cached alike.
        if answer.isCacheable, read.answer.isCacheable { check(read.answer.keep <= answer.keep, "kept longer") }
    }
    let ttls = zip(answer.records(), read.answer.records())
    for (before, after) in ttls {
        switch age {
        case .elapsed(let seconds): check(after.ttl <= before.ttl - min(before.ttl, seconds), "TTL goes up")
        case .fixed(let seconds): check(after.ttl <= seconds, "TTL is not \(seconds)")
        }
    }
}

extension Answer {
    /// The body without the extended errors at its end, which only clients with EDNS are told.
    fileprivate var bodyOfRecords: ArraySlice<UInt8> { body.dropLast(Int(head.extendedErrorLength)) }
}

private func checkRefusal(_ code: ResponseCode, _ question: Question?, _ query: [UInt8]) {
    var question = question
    if question?.edns != nil { question?.replyOptions = ReplyOptions(keepAlive: 100) }
    var out = [UInt8](repeating: 0xEE, count: Reply.maximumRefusalLength)
    var room = out.mutableSpan
    let length = Reply.refuse(code, extendedError: .prohibited, question: question, query: query.span, into: &room)
    check(length >= Header.length, "no refusal")
    check(out[..<2] == query[..<2] && out[2] & 0x80 != 0, "not a response to the query")
    guard let question else { return check(length == Header.length, "more than a header") }
    check(out[Header.length..<question.end] == query[Header.length..<question.end], "another question")
    guard !question.isEmpty else { return }
    out.removeLast(out.count - length)
    do throws(WireError) {
        let read = try Response.read(
            out.span, id: question.id, to: question.name(in: query.span), type: question.type,
            recordClass: question.recordClass, defaultNegativeTTL: 30)
        check(read.responseCode == (question.edns == nil ? code.inHeaderAlone : code), "another response code")
        check(read.answer.extendedErrors == (question.edns == nil ? [] : [.prohibited]), "extended error")
    } catch {
        fatalError("our own refusal: \(error)")
    }
}
