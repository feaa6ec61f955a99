import Base
import CAllocations
import DNSWire
import Testing

/// The path of a query that is answered from memory asks for no heap, in debug builds either.
@Suite(.enabled(if: allocationsAreCounted(), "under a sanitizer allocations are not counted"))
struct AllocationTests {
    private let cookies = ServerCookies(seed: (1, 2))

    @Test func theCounterCounts() {
        let before = allocationsOfThisThread()
        let array = [UInt8](repeating: 1, count: Int.random(in: 100...200))
        #expect(allocationsOfThisThread() > before)
        #expect(array.count >= 100)
    }

    @Test func readingAndReplyingAllocateNothing() {
        let queries = [Vectors.query, Vectors.ednsQuery, Vectors.longestName, Vectors.signedQuery]
        let answer = Answer.addresses(
            Name("www.example.com")!, type: .a, (0..<40).map { .v4(192, 0, 2, $0) }, ttl: 60)
        var buffer = [UInt8](repeating: 0, count: 4096)
        for query in queries {
            // Once before, for what is set up lazily.
            var lengths = serve(query, answer, into: &buffer)
            let before = allocationsOfThisThread()
            for _ in 0..<1000 { lengths += serve(query, answer, into: &buffer) }
            let after = allocationsOfThisThread()
            #expect(after == before)
            #expect(lengths > 0)
        }
    }

    /// A whole reply, a truncated one and a refusal.
    private func serve(_ query: [UInt8], _ answer: Answer, into buffer: inout [UInt8]) -> Int {
        guard case .question(var question) = Question.read(query.span) else { return 0 }
        if let edns = question.edns {
            let cookie = cookies.cookie(for: edns, in: query.span, from: .v4(192, 0, 2, 1), at: 1_559_731_985)
            question.replyOptions = ReplyOptions(cookie: cookie?.cookie, keepAlive: 100)
        }
        var out = buffer.mutableSpan
        var length = 0
        var limit = 512
        while limit <= 4096 {
            length += Reply.write(
                answer, age: .elapsed(1), to: question, query: query.span, limit: limit, into: &out)
            limit *= 8
        }
        length += Reply.refuse(
            .refused, extendedError: .prohibited, question: question, query: query.span, into: &out)
        return length
    }
}
