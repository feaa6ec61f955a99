import Base
import DNSWire

/// Cuts a stream into DNS messages, each after its length in two octets (RFC 1035 §4.2.2).
struct FramedMessages {
    /// Octets of the shortest message; a smaller length breaks the protocol.
    private let shortest: Int
    /// Octets that were not passed on yet.
    private var incoming: [UInt8] = []

    init(shortest: Int = 0) { self.shortest = shortest }

    /// The number of buffered octets.
    var count: Int { incoming.count }

    /// Whether a whole message is buffered.
    var hasMessage: Bool { incoming.count >= 2 && incoming.count - 2 >= Int(incoming.span.integer16(at: 0)) }

    /// Takes octets, and passes on the complete messages.
    /// - Parameter take: Takes a message, and returns false if the rest is to stay buffered.
    mutating func receive(
        _ bytes: Span<UInt8>, _ take: (Span<UInt8>) throws(ConversationFailure) -> Bool
    ) throws(ConversationFailure) {
        guard !incoming.isEmpty else {
            // Usually whole messages come, which are read in place.
            let end = try messages(in: bytes, take)
            return incoming.append(bytes.extracting(end...))
        }
        incoming.append(bytes)
        let all = exchange(&incoming, with: [])
        let end = try messages(in: all.span, take)
        incoming = end == 0 ? all : Array(all[end...])
    }

    /// Takes octets, and passes no message on.
    mutating func keep(_ bytes: Span<UInt8>) { incoming.append(bytes) }

    /// - Returns: The offset after the last message that was taken.
    private func messages(
        in bytes: Span<UInt8>, _ take: (Span<UInt8>) throws(ConversationFailure) -> Bool
    ) throws(ConversationFailure) -> Int {
        var offset = 0
        var goesOn = true
        while goesOn, bytes.count - offset >= 2 {
            let start = offset + 2
            let length = Int(bytes.integer16(at: offset))
            guard length >= shortest else { throw ConversationFailure("the server does not speak DNS") }
            guard bytes.count - start >= length else { break }
            goesOn = try take(bytes.extracting(start..<start + length))
            offset = start + length
        }
        return offset
    }
}
