import Testing

@testable import Streams

/// The side that answers, by octets.
@Suite struct ServerFramesTests {
    private final class Owner: MessageOwner {
        var takesMessages = true
        var asked: [[UInt8]] = []
        func asked(_ message: Span<UInt8>, as id: RequestID) { asked.append(message.indices.map { message[$0] }) }
    }

    private let owner = Owner()
    private let frames: ServerFrames
    init() { frames = ServerFrames(owner: owner) }

    private func receive(_ bytes: [UInt8]) throws {
        var events: [ConversationEvent] = []
        try frames.receive(bytes.span, into: &events)
        #expect(events.isEmpty)
    }

    @Test(arguments: 1...9) func messagesComeInAnyPieces(length: Int) throws {
        let bytes: [UInt8] = [0, 2, 7, 8, 0, 0, 0, 1, 9]
        for start in stride(from: 0, to: bytes.count, by: length) {
            try receive(Array(bytes[start..<min(start + length, bytes.count)]))
        }
        #expect(owner.asked == [[7, 8], [], [9]])
        #expect(frames.held == 0 && frames.underWay == 3 && frames.isAnswering && !frames.mayGoOn)
    }

    @Test func answersLeaveInTheOrderInWhichTheyAreGiven() throws {
        try receive([0, 1, 1, 0, 1, 2, 0, 1, 3])
        frames.answer([5, 6].span, to: 0)
        frames.answer(nil, to: 0)
        #expect(frames.isAnswering && frames.unsent == 4)
        frames.answer([UInt8](repeating: 0, count: 256).span, to: 0)
        #expect(!frames.isAnswering)
        #expect(frames.takeOutput() == [0, 2, 5, 6, 1, 0] + [UInt8](repeating: 0, count: 256))
        #expect(frames.takeOutput().isEmpty)
    }

    /// What an owner has no room for waits, and is owed an answer all the same.
    @Test func messagesWaitForRoom() throws {
        owner.takesMessages = false
        try receive([0, 1, 1, 0, 1])
        try receive([2, 0])
        #expect(owner.asked.isEmpty && frames.held == 7 && frames.isAnswering && !frames.mayGoOn)
        owner.takesMessages = true
        #expect(frames.mayGoOn)
        try receive([])
        #expect(owner.asked == [[1], [2]] && frames.held == 1 && !frames.mayGoOn)
    }
}
