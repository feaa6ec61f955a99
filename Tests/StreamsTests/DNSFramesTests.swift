import TestSupport
import Testing

@testable import Streams

@Suite struct DNSFramesTests {
    private static func query(_ name: UInt8, count: Int = 17) -> [UInt8] {
        [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0] + [UInt8](repeating: name, count: count - 12)
    }

    private static func frame(_ id: UInt16, _ name: UInt8, count: Int = 17) -> [UInt8] {
        var message = query(name, count: count)
        (message[0], message[1]) = (UInt8(id >> 8), UInt8(id & 0xFF))
        return [UInt8(count >> 8), UInt8(count & 0xFF)] + message
    }

    private static func conversation(_ ids: [UInt16]) -> DNSFrames {
        var rest = ids
        return DNSFrames { rest.removeFirst() }
    }

    private static func receive(
        _ bytes: [UInt8], _ conversation: DNSFrames
    ) throws(ConversationFailure) -> [ConversationEvent] {
        var events: [ConversationEvent] = []
        try conversation.receive(bytes.span, into: &events)
        return events
    }

    @Test func aMessageGoesBehindItsLengthWithAnIDOfItsOwn() {
        let conversation = Self.conversation([0xABCD, 0xABCD, 0x0102])
        conversation.open(Self.query(1), as: 1)
        conversation.open(Self.query(2, count: 300), as: 2)
        // An id that is in use is not given to another.
        #expect(conversation.takeOutput() == Self.frame(0xABCD, 1) + Self.frame(0x0102, 2, count: 300))
        #expect(conversation.takeOutput().isEmpty && !conversation.isIdle)
    }

    @Test func answersComeInAnyOrderAndPieces() throws {
        let answers = Self.frame(2, 2) + Self.frame(3, 3, count: 500) + Self.frame(1, 1)
        let expected: [ConversationEvent] = [
            .answered(12, .message(Self.query(2))), .answered(13, .message(Self.query(3, count: 500))),
            .answered(11, .message(Self.query(1))),
        ]
        for length in [1, 2, 3, 19, answers.count] {
            let conversation = Self.conversation([1, 2, 3])
            for number in 1...3 { conversation.open(Self.query(UInt8(number)), as: UInt64(10 + number)) }
            var events: [ConversationEvent] = []
            for start in stride(from: 0, to: answers.count, by: length) {
                #expect(!conversation.isIdle)
                events += try Self.receive(
                    Array(answers[start..<min(start + length, answers.count)]), conversation)
            }
            #expect(events == expected && conversation.isIdle)
        }
    }

    @Test func roomIsTakenAndGivenBack() throws {
        var id: UInt16 = 0
        let conversation = DNSFrames {
            id += 1
            return id
        }
        for number in 0..<DNSFrames.maximumUnderWay {
            #expect(conversation.room == DNSFrames.maximumUnderWay - number)
            conversation.open(Self.query(0), as: UInt64(number))
        }
        #expect(conversation.room == 0)
        _ = try Self.receive(Self.frame(5, 0), conversation)
        #expect(conversation.room == 1)
        // What was given up takes no room, and its answer is nobody's.
        conversation.cancel(7)
        #expect(conversation.room == 2)
        #expect(try Self.receive(Self.frame(8, 0), conversation).isEmpty)
        #expect(conversation.room == 2)
    }

    @Test func whoeverGoesOnAnsweringNobodyIsNotListenedTo() throws {
        let conversation = Self.conversation([1, 2])
        conversation.open(Self.query(1), as: 1)
        #expect(try Self.receive(Self.frame(1, 1) + Self.frame(1, 1), conversation).count == 1)
        for _ in 1...DNSFrames.maximumStrays {
            #expect(try Self.receive(Self.frame(9, 1), conversation).isEmpty)
        }
        #expect(conversation.mayTakeMore)
        #expect(throws: ConversationFailure("unsolicited answers")) {
            try Self.receive(Self.frame(9, 1), conversation)
        }
        #expect(!conversation.mayTakeMore)
    }

    /// Strays are weighed against answers: a server that gives each answer twice is still of use after any number of them, in
    /// whatever order they come.
    @Test(arguments: [1, 100]) func whoeverAnswersTwiceIsListenedTo(together: Int) throws {
        var id: UInt16 = 0
        let conversation = DNSFrames {
            id += 1
            return id
        }
        for start in stride(from: 1, to: 1000, by: together) {
            let numbers = (start..<start + together).map { UInt16($0) }
            for number in numbers { conversation.open(Self.query(0), as: UInt64(number)) }
            let answers = numbers.flatMap { Self.frame($0, 0) }
            #expect(try Self.receive(answers + answers, conversation).count == together)
        }
        #expect(conversation.mayTakeMore)
        // That is no credit for ever.
        #expect(throws: ConversationFailure.self) {
            for _ in 0...DNSFrames.maximumUnderWay + DNSFrames.maximumStrays {
                _ = try Self.receive(Self.frame(9, 1), conversation)
            }
        }
    }

    /// Questions that a server drops, and that nobody waits for any more, take no room from others.
    @Test func whatIsNeverAnsweredTakesNoRoom() throws {
        var id: UInt16 = 0
        let conversation = DNSFrames {
            id &+= 1
            return id
        }
        for number in 0..<5000 as Range<UInt64> {
            conversation.open(Self.query(0), as: number)
            conversation.cancel(number)
            #expect(conversation.isIdle)
        }
        #expect(conversation.room == DNSFrames.maximumUnderWay)
        conversation.open(Self.query(7), as: 5000)
        // The answer to one that was given up lately is known as such, and that to a late one is a stray.
        #expect(try Self.receive(Self.frame(4999, 0), conversation).isEmpty)
        #expect(try Self.receive(Self.frame(1, 0), conversation).isEmpty)
        #expect(try Self.receive(Self.frame(5001, 7), conversation) == [.answered(5000, .message(Self.query(7)))])
    }

    @Test(arguments: 0...11) func whatHasNoHeaderIsNoDNS(length: UInt8) {
        let conversation = Self.conversation([1])
        conversation.open(Self.query(1), as: 1)
        #expect(throws: ConversationFailure("the server does not speak DNS")) {
            try Self.receive([0, length], conversation)
        }
    }

    /// What came before it counts.
    @Test func whatCameBeforeJunkIsTaken() {
        let conversation = Self.conversation([1, 2])
        conversation.open(Self.query(1), as: 1)
        conversation.open(Self.query(2), as: 2)
        var events: [ConversationEvent] = []
        let bytes = Self.frame(2, 2) + [0, 3, 1, 2, 3]
        #expect(throws: ConversationFailure.self) { try conversation.receive(bytes.span, into: &events) }
        #expect(events == [.answered(2, .message(Self.query(2)))])
    }

    /// However octets are changed and cut: each query is answered at most once, and the pieces make no difference.
    @Test func mutations() {
        var chance = Chance.announced("mutations")
        for _ in 0..<2000 {
            let count = 1 + chance.below(8)
            var bytes = (0..<count).flatMap { Self.frame(UInt16($0), UInt8($0), count: 12 + chance.below(40)) }
            bytes = mutate(bytes, with: [0, 1, 12, 255], &chance)
            let outcomes = [bytes.count, 1, 1 + chance.below(30)].map { length in
                let conversation = Self.conversation((0..<UInt16(count)).map { $0 })
                for number in 0..<count { conversation.open(Self.query(0), as: UInt64(number)) }
                var events: [ConversationEvent] = []
                var hasFailed = false
                for start in stride(from: 0, to: bytes.count, by: max(1, length)) where !hasFailed {
                    let piece = Array(bytes[start..<min(start + max(1, length), bytes.count)])
                    do { try conversation.receive(piece.span, into: &events) } catch { hasFailed = true }
                }
                return "\(events) \(hasFailed)"
            }
            #expect(Set(outcomes).count == 1)
        }
    }
}
