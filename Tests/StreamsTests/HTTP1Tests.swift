import HTTP
import Testing

@testable import Streams

@Suite struct HTTP1Tests {
    private static let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    private static func receive(
        _ text: String, _ conversation: HTTP1
    ) throws(ConversationFailure) -> [ConversationEvent] {
        var events: [ConversationEvent] = []
        let bytes = Array(text.utf8)
        try conversation.receive(bytes.span, into: &events)
        return events
    }

    private static func asked() -> HTTP1 {
        let conversation = HTTP1()
        conversation.open(Array("GET".utf8), as: 7)
        return conversation
    }

    @Test func oneRequestAtATime() throws {
        let conversation = HTTP1()
        #expect(conversation.room == 1 && conversation.isIdle)
        conversation.open(Array("GET".utf8), as: 7)
        #expect(conversation.takeOutput() == Array("GET".utf8) && conversation.takeOutput().isEmpty)
        #expect(conversation.room == 0 && !conversation.isIdle && conversation.mayTakeMore)
        #expect(!conversation.hasBegun)
        #expect(try Self.receive("HTTP/1.1 200 OK\r\nContent-Le", conversation).isEmpty)
        #expect(conversation.hasBegun)
        #expect(
            try Self.receive("ngth: 2\r\n\r\nhi", conversation)
                == [.answered(7, .http(HTTPResponse(status: 200, body: Array("hi".utf8))))])
        #expect(conversation.room == 1 && conversation.isIdle && conversation.mayTakeMore)
    }

    @Test func aRequestCannotBeTakenBack() {
        let conversation = Self.asked()
        conversation.cancel(7)
        #expect(conversation.room == 0 && !conversation.isIdle)
    }

    @Test(arguments: ["x", "\r\n", "HTTP/1.1 100 Continue\r\n\r\n", response])
    func behindAResponseThatHasMoreThereIsNoOther(stray: String) throws {
        let conversation = Self.asked()
        #expect(try Self.receive(Self.response + stray, conversation).count == 1)
        #expect(!conversation.mayTakeMore && conversation.room == 0 && !conversation.isIdle)
    }

    @Test func aServerThatWantsToCloseIsAskedNoMore() throws {
        let conversation = Self.asked()
        let last = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        #expect(try Self.receive(last, conversation).count == 1)
        #expect(!conversation.mayTakeMore && conversation.room == 0)
    }

    @Test func whatNobodyAskedForIsAFailure() {
        let conversation = HTTP1()
        #expect(throws: ConversationFailure("unsolicited bytes")) {
            try Self.receive(Self.response, conversation)
        }
    }

    @Test(arguments: [false, true]) func theEndOfABody(isCut: Bool) throws {
        let conversation = Self.asked()
        #expect(try Self.receive("HTTP/1.1 200 OK\r\n\r\nhi", conversation).isEmpty)
        var events: [ConversationEvent] = []
        try conversation.endOfStream(isCut: isCut, into: &events)
        guard case .answered(7, .http(let response)) = events.first else { return #expect(Bool(false)) }
        #expect(response.isWhole != isCut && !conversation.mayTakeMore)
    }

    @Test func theEndInAResponseIsAFailure() throws {
        let conversation = Self.asked()
        _ = try Self.receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh", conversation)
        var events: [ConversationEvent] = []
        #expect(throws: ConversationFailure.self) { try conversation.endOfStream(isCut: false, into: &events) }
    }
}
