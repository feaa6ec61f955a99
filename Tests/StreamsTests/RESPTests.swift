import TestSupport
import Testing

@testable import Streams

@Suite struct RESPTests {
    private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    private static func receive(
        _ text: String, _ conversation: RESP
    ) throws(ConversationFailure) -> [ConversationEvent] {
        var events: [ConversationEvent] = []
        try conversation.receive(bytes(text).span, into: &events)
        return events
    }

    /// A conversation with so many commands under way.
    private static func asking(_ count: Int) -> RESP {
        let conversation = RESP()
        for id in 0..<count { conversation.open(RESP.command([bytes("GET"), bytes("k")]), as: UInt64(id)) }
        return conversation
    }

    @Test func aCommandIsAListOfStrings() {
        let conversation = RESP()
        conversation.open(RESP.command([Self.bytes("GET"), Self.bytes("h1:a"), []]), as: 1)
        #expect(conversation.takeOutput() == Self.bytes("*3\r\n$3\r\nGET\r\n$4\r\nh1:a\r\n$0\r\n\r\n"))
        #expect(conversation.takeOutput().isEmpty && !conversation.isIdle)
    }

    @Test func repliesComeInTheOrderOfTheCommandsAndInAnyPieces() throws {
        let text =
            "+OK\r\n$5\r\na\r\nb\n\r\n$-1\r\n:1\r\n-OOM command not allowed when 'k' is full\r\n$0\r\n\r\n-odd\r\n"
        let expected: [StoreReply] = [
            .done, .value(Self.bytes("a\r\nb\n")), .nothing, .done, .error(StoreError(word: "OOM")), .value([]),
            .error(.other),
        ]
        for length in [1, 2, 3, 7, text.utf8.count] {
            let conversation = Self.asking(expected.count)
            var events: [ConversationEvent] = []
            let octets = Self.bytes(text)
            for start in stride(from: 0, to: octets.count, by: length) {
                #expect(!conversation.isIdle)
                try conversation.receive(octets[start..<min(start + length, octets.count)].span, into: &events)
            }
            #expect(events == expected.enumerated().map { .answered(UInt64($0), .store($1)) })
            #expect(conversation.isIdle && conversation.room == RESP.maximumUnderWay)
        }
    }

    @Test(arguments: StoreError.reasons.keys) func anErrorIsKnownByItsFirstWord(word: String) throws {
        let (conversation, error) = (Self.asking(2), StoreError(word: word))
        let events = try Self.receive("-\(word) h1:secret\r\n-\(word)\r\n", conversation)
        #expect(events == [.answered(0, .store(.error(error))), .answered(1, .store(.error(error)))])
    }

    @Test func roomIsTakenAndGivenBackHoweverLongItLasts() throws {
        let conversation = Self.asking(RESP.maximumUnderWay)
        #expect(conversation.room == 0)
        for id in 0..<3 * RESP.maximumUnderWay {
            #expect(try Self.receive("$-1\r\n", conversation) == [.answered(UInt64(id), .store(.nothing))])
            #expect(conversation.room == 1)
            conversation.open(RESP.command([Self.bytes("GET")]), as: UInt64(id + RESP.maximumUnderWay))
        }
        #expect(conversation.room == 0)
        var events: [ConversationEvent] = []
        try conversation.endOfStream(isCut: true, into: &events)
        #expect(!conversation.mayTakeMore && events.isEmpty)
    }

    @Test(arguments: [
        ("HTTP/1.1 400 Bad Request\r\n", "the server does not speak RESP2"),
        ("*1\r\n:1\r\n", "the server does not speak RESP2"),
        ("$\r\n", "a length that is none"), ("$-2\r\n", "a length that is none"), ("$+1\r\n", "a length that is none"),
        ("$99999999999999999999\r\n", "a length that is none"),
        ("$\(RESP.maximumValueLength + 1)\r\n", "a value that is too long"),
        ("$10485760\r\n", "a value that is too long"),
        ("$1\r\nab\r\n", "a value that is not as long as it says"),
        (":one\r\n", "a number that is none"), ("+OK\rOK\r\n", "a line without its end"),
        ("-" + String(repeating: "x", count: RESP.maximumLineLength + 2), "a line that is too long"),
    ])
    func whatIsNoReplyEndsIt(text: String, reason: String) {
        let conversation = Self.asking(1)
        #expect(throws: ConversationFailure(reason)) { try Self.receive(text, conversation) }
    }

    @Test func aReplyThatNobodyAskedForEndsIt() throws {
        let conversation = Self.asking(1)
        var events: [ConversationEvent] = []
        #expect(throws: ConversationFailure("an unsolicited reply")) {
            try conversation.receive(Self.bytes("+OK\r\n+OK\r\n").span, into: &events)
        }
        // What came before it counts.
        #expect(events == [.answered(0, .store(.done))])
    }

    @Test func theLongestValueIsTaken() throws {
        let conversation = Self.asking(1)
        let value = String(repeating: "v", count: RESP.maximumValueLength)
        #expect(try Self.receive("$\(RESP.maximumValueLength)\r\n\(value)\r\n", conversation).count == 1)
    }
}
