import Streams

extension Target {
    /// What a store sends on a connection with eight commands: in whatever pieces it comes, each is answered once at most, in
    /// order, and with no more than came.
    static let resp = Target(name: "resp") { bytes in
        let outcomes = splits(of: bytes).map { converse($0) }
        check(outcomes[0] == outcomes[1], "it depends on the pieces")
        var last: RequestID = 99
        var octets = 0
        for event in outcomes[0].events {
            guard case .answered(let id, .store(let reply)) = event else {
                check(false, "\(event)")
                continue
            }
            check(id > last, "\(id) behind \(last)")
            last = id
            guard case .value(let value) = reply else { continue }
            check(value.count <= RESP.maximumValueLength, "a value of \(value.count) octets")
            octets += value.count
        }
        check(octets <= bytes.count, "more than came")
        check(last < 108, "the reply to no command")
    }
}

private struct RESPOutcome: Equatable {
    var events: [ConversationEvent] = []
    var failure: ConversationFailure?
    var room = 0
}

private func converse(_ pieces: [ArraySlice<UInt8>]) -> RESPOutcome {
    let conversation = RESP()
    for number in 0..<8 as Range<UInt64> { conversation.open([1], as: 100 + number) }
    var outcome = RESPOutcome()
    do throws(ConversationFailure) {
        for piece in pieces {
            let bytes = Array(piece)
            try conversation.receive(bytes.span, into: &outcome.events)
        }
        outcome.room = conversation.room
    } catch {
        outcome.failure = error
    }
    return outcome
}
