import CAllocations
import HTTP
import Testing

/// What an exchange costs once a connection is warm.
@Suite(.enabled(if: allocationsAreCounted(), "under a sanitizer allocations are not counted"))
struct HTTP2AllocationTests {
    /// Most are nghttp2's, for the stream, its frames and its names. An optimized build needs fewer.
    static let ceiling = 24.0

    @Test func exchange() throws {
        let session = try HTTP2Session(bodyLimit: 65_535)
        let request = Client.request(body: [UInt8](repeating: 1, count: 128))
        var stream: UInt32 = 1
        let start = Frame.settings()
        session.receive(start.span)
        let answers = (0..<300 as Range<UInt32>).map { number in
            let fields = [
                (":status", "200"), ("content-type", "application/dns-message"), ("content-length", "468"),
                ("age", "1"),
            ]
            return Frame.headers(2 * number + 1, fields)
                + Frame.data(2 * number + 1, [UInt8](repeating: 7, count: 468), ends: true)
        }
        var answered = 0
        func exchange() {
            _ = session.open(request, as: UInt64(stream))
            _ = session.takeOutput()
            let answer = answers[Int(stream / 2)]
            session.receive(answer.span)
            while let event = session.nextEvent() { if case .answered = event { answered += 1 } }
            stream += 2
        }
        for _ in 0..<100 { exchange() }
        let before = allocationsOfThisThread()
        for _ in 0..<200 { exchange() }
        let each = Double(allocationsOfThisThread() - before) / 200
        #expect(answered == 300)
        #expect(each <= Self.ceiling)
    }
}
