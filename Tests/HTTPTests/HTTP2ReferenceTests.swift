import Testing

@testable import HTTP

/// Heads that refer to one long field again and again, an octet each (RFC 7541 §7.3): how often that field is looked at.
@Suite struct HTTP2ReferenceTests {
    /// Counts the fields that it is given, and takes no more of a head than 16 KiB, as client and server do.
    private final class Counter: HTTP2Owner {
        var (fields, length, resets) = (0, 0, 0)

        init() { super.init(frameLimit: 1000) }

        override func beganHead(_ stream: Int32) { length = 0 }

        override func receive(_ stream: Int32, field name: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
            fields += 1
            length += name.count + value.count + 32
            return length <= HTTPResponseReader.headLimit
        }

        override func closed(_ stream: Int32, _ code: HTTP2Code) { resets += 1 }
    }

    private static let references = 16_000
    private static let long = [0x40, 1, UInt8(ascii: "x")] + Frame.text(String(repeating: "a", count: 3900))
    private static let request = Frame.literals([
        (":method", "GET"), (":scheme", "https"), (":authority", "h"), (":path", "/"),
    ])

    /// The first head brings the field into the table (index 62), each further one refers to it as often as its frame has room.
    private static func heads(_ start: [UInt8], streams: [UInt32]) -> [UInt8] {
        Frame.headers(streams[0], block: start + long, ends: true)
            + streams.dropFirst().flatMap {
                Frame.headers($0, block: start + [UInt8](repeating: 0xBE, count: references), ends: true)
            }
    }

    @Test("a head that has become too long is not looked at any more")
    func restOfHead() throws {
        let library = try HTTP2Library(.server)
        let counter = Counter()
        try library.start(for: counter)
        let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + Frame.settings()
        let streams = (0..<20).map { UInt32(1 + 2 * $0) }
        try library.receive((preface + Self.heads(Self.request, streams: streams)).span)
        // Four fields and one long one, then four and those of the long one that fit, and the one that did not.
        #expect(counter.fields == 5 + 19 * (4 + 5))
        var output: [UInt8] = []
        while try library.send(into: &output) {}
        #expect(counter.resets == 19)
    }

    @Test(
        "a server's answer that is too long fails alone, and costs no more than a few of its fields",
        arguments: [false, true])
    func answers(isCancelled: Bool) throws {
        let client = try Client(requests: 20)
        if isCancelled { for id in 1..<20 { client.session.cancel(UInt64(id)) } }
        let streams = (0..<20).map { UInt32(1 + 2 * $0) }
        let events = client.receive(
            Frame.settings() + Self.heads(Frame.literals([(":status", "200")]), streams: streams))
        #expect(events.first == .answered(0, HTTPResponse(status: 200, body: [])))
        let failures = (1..<20).map { HTTP2Event.failed(UInt64($0), .response(.headTooLong)) }
        #expect(Array(events.dropFirst()) == (isCancelled ? [] : failures))
        #expect(try client.frames.filter { $0.kind == .reset }.map(\.stream) == Array(streams.dropFirst()))
        #expect(client.session.room > 0)
    }
}
