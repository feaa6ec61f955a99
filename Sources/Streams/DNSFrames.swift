/// DNS messages over a stream, each behind its length in two octets (RFC 1035 §4.2.2): many questions at once, answered
/// in any order and told apart by an id of their own (RFC 7766 §6.2.1.1, §7).
///
/// A stray answer, whose question is unknown, cancelled or answered already, is ignored, since its id is not given to
/// another question; with too many of them the connection is given up.
package struct DNSFrames: Conversation {
    private let nextID: () -> UInt16
    /// By the id on the wire; nil: the request was cancelled, but its id must not be given to another until it is
    /// answered.
    private var underWay: [UInt16: RequestID?] = [:]
    private var waiting = 0
    private var incoming: [UInt8] = []
    private var output: [UInt8] = []
    /// How many stray answers have come.
    private var strays = 0

    /// Questions that may be under way at once.
    package static let maximumUnderWay = 64
    /// The most stray answers that are ignored on one connection.
    package static let maximumStrays = 16
    /// Octets of a message's header, the shortest message possible (RFC 1035 §4.1.1).
    private static let headerLength = 12

    /// - Parameter nextID: Gives unpredictable ids; one that is in use is skipped.
    package init(nextID: @escaping () -> UInt16) { self.nextID = nextID }

    package var room: Int { max(0, Self.maximumUnderWay - underWay.count) }
    package var mayTakeMore: Bool { strays <= Self.maximumStrays }
    package var isIdle: Bool { waiting == 0 && incoming.isEmpty }

    /// - Parameter request: A message of 12 to 65,535 octets, whose id is replaced.
    package mutating func open(_ request: [UInt8], as id: RequestID) {
        precondition(room > 0 && Self.headerLength...Int(UInt16.max) ~= request.count)
        var wireID = nextID()
        // Ends soon: far fewer ids are in use than there are.
        while underWay[wireID] != nil { wireID = nextID() }
        underWay[wireID] = .some(id)
        waiting += 1
        output.reserveCapacity(output.count + 2 + request.count)
        for octet in [UInt16(request.count), wireID] {
            output.append(UInt8(octet >> 8))
            output.append(UInt8(truncatingIfNeeded: octet))
        }
        output.append(contentsOf: request[2...])
    }

    package mutating func cancel(_ id: RequestID) -> Bool {
        for (wireID, request) in underWay where request == id {
            underWay[wireID] = .some(nil)
            waiting -= 1
            break
        }
        return true
    }

    package mutating func receive(
        _ bytes: Span<UInt8>, into events: inout [ConversationEvent]
    ) throws(ConversationFailure) {
        incoming.reserveCapacity(incoming.count + bytes.count)
        for index in bytes.indices { incoming.append(bytes[index]) }
        var offset = 0
        defer { incoming.removeFirst(offset) }
        while incoming.count - offset >= 2 {
            let length = Int(incoming[offset]) << 8 | Int(incoming[offset + 1])
            guard length >= Self.headerLength else { throw ConversationFailure("the server does not speak DNS") }
            guard incoming.count - offset - 2 >= length else { return }
            offset += 2 + length
            try readMessage(incoming[(offset - length)..<offset], &events)
        }
    }

    private mutating func readMessage(
        _ message: ArraySlice<UInt8>, _ events: inout [ConversationEvent]
    ) throws(ConversationFailure) {
        let wireID = UInt16(message[message.startIndex]) << 8 | UInt16(message[message.startIndex + 1])
        guard let request = underWay.removeValue(forKey: wireID) else {
            strays += 1
            guard mayTakeMore else { throw ConversationFailure("answers that nobody asked for") }
            return
        }
        guard let request else { return }
        waiting -= 1
        var answer = Array(message)
        (answer[0], answer[1]) = (0, 0)
        events.append(.answered(request, .message(answer)))
    }

    package mutating func endOfStream(
        isCut: Bool, into events: inout [ConversationEvent]
    ) throws(ConversationFailure) {
        // A message that is not whole is no answer, and there is no way to find the next one.
        strays = Self.maximumStrays + 1
    }

    package mutating func takeOutput() -> [UInt8] { exchange(&output, with: []) }
}
