import Streams

extension Target {
    /// What a DNS server sends on a connection with eight questions, whose ids are 0 to 7: in whatever pieces it comes, each is
    /// answered once at most, and by what came under its id.
    static let frames = Target(name: "frames") { bytes in
        let outcomes = splits(of: bytes).map { converse($0) }
        check(outcomes[0] == outcomes[1], "it depends on the pieces")
        var answered: Set<RequestID> = []
        for event in outcomes[0].events {
            guard case .answered(let id, .message(let message)) = event else {
                check(false, "\(event)")
                continue
            }
            check(answered.insert(id).inserted, "\(id) is answered twice")
            check(message.count >= 12 && message[0] == 0 && message[1] == 0, "no message, or its id")
            let frame = [UInt8(message.count >> 8), UInt8(message.count & 0xFF), 0, UInt8(id - 100)] + message[2...]
            check(bytes.count >= frame.count, "more than came")
            let isThere = (0...bytes.count - frame.count).contains { bytes[$0...].starts(with: frame) }
            check(isThere, "what did not come")
        }
        check(answered.contains(103) == false, "what nobody waits for is answered")
        // Each answer gives its room back, also the one that nobody waited for.
        let least = DNSFrames.maximumUnderWay - 8 + answered.count
        check((least...least + 1).contains(outcomes[0].room), "room for \(outcomes[0].room)")
    }
}

private struct FramesOutcome: Equatable {
    var events: [ConversationEvent] = []
    var failure: ConversationFailure?
    var room = 0
}

private func converse(_ pieces: [ArraySlice<UInt8>]) -> FramesOutcome {
    var next: UInt16 = 0
    let conversation = DNSFrames {
        next += 1
        return next - 1
    }
    for number in 0..<8 as Range<UInt64> { conversation.open([UInt8](repeating: 1, count: 12), as: 100 + number) }
    conversation.cancel(103)
    var outcome = FramesOutcome()
    do throws(ConversationFailure) {
        for piece in pieces {
            let bytes = Array(piece)
            try conversation.receive(bytes.span, into: &outcome.events)
        }
    } catch {
        outcome.failure = error
    }
    outcome.room = conversation.room
    return outcome
}
