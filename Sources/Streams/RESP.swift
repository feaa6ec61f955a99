import Base

/// Commands to a store and its replies, in the order of the commands (RESP2, the protocol of Redis and Valkey).
///
/// Only commands with a line, a number or one value as reply are used, so any other reply breaks the protocol. A value
/// longer than ``maximumValueLength`` breaks it too: this fleet has not written the value, and to skip it would take as
/// long as to read it.
package final class RESP: ClientConversation {
    /// The commands that await their replies, the oldest first.
    private var underWay: [RequestID] = []
    private var incoming: [UInt8] = []
    private var output: [UInt8] = []
    private var isEnded = false

    /// Commands that may be under way at once.
    package static let maximumUnderWay = 1024
    /// The longest line, such as the text of an error: Redis in protected mode sends more than 1,000 octets.
    package static let maximumLineLength = 4096
    /// The longest value: a sealed answer of 65,535 octets with its additions.
    package static let maximumValueLength = 66 * 1024

    package init() {}

    package var room: Int { mayTakeMore ? max(0, Self.maximumUnderWay - underWay.count) : 0 }
    package var mayTakeMore: Bool { !isEnded }
    package var isIdle: Bool { underWay.isEmpty && incoming.isEmpty }

    /// The octets of a command (RESP2: an array of strings).
    package static func command(_ words: [[UInt8]]) -> [UInt8] {
        var octets: [UInt8] = []
        octets.reserveCapacity(words.reduce(16) { $0 + $1.count + 16 })
        octets += "*\(words.count)\r\n".utf8
        for word in words {
            octets += "$\(word.count)\r\n".utf8
            octets += word
            octets += "\r\n".utf8
        }
        return octets
    }

    /// - Parameter request: A command made by ``command(_:)``.
    package func open(_ request: [UInt8], as id: RequestID) {
        precondition(room > 0)
        underWay.append(id)
        output += request
    }

    package func receive(_ bytes: Span<UInt8>, into events: inout [ConversationEvent]) throws(ConversationFailure) {
        incoming.append(bytes)
        var (offset, answered) = (0, 0)
        defer {
            incoming.removeFirst(offset)
            underWay.removeFirst(answered)
        }
        while let (reply, length) = try read(at: offset) {
            offset += length
            guard answered < underWay.count else { throw ConversationFailure("an unsolicited reply") }
            events.append(.answered(underWay[answered], .store(reply)))
            answered += 1
        }
    }

    package func endOfStream(isCut: Bool, into events: inout [ConversationEvent]) throws(ConversationFailure) {
        isEnded = true
    }

    package func takeOutput() -> [UInt8] { exchange(&output, with: []) }

    // MARK: Replies

    /// The reply that begins at `offset` and its length; nil if the reply is incomplete.
    private func read(at offset: Int) throws(ConversationFailure) -> (StoreReply, length: Int)? {
        guard offset < incoming.count else { return nil }
        let kind = incoming[offset]
        guard "+-:$".utf8.contains(kind) else { throw ConversationFailure("the server does not speak RESP2") }
        guard let line = try line(at: offset + 1) else { return nil }
        let length = line.count + 3
        switch kind {
        case UInt8(ascii: "+"): return (.done, length)
        case UInt8(ascii: "-"): return (.error(StoreError(line)), length)
        case UInt8(ascii: ":"):
            guard Self.number(line) != nil else { throw ConversationFailure("a number that is none") }
            return (.done, length)
        default: return try value(Self.number(line), behind: offset + length).map { ($0, length + $1) }
        }
    }

    /// The value after its length, with its octets and the end of line; nil if the value is incomplete.
    private func value(_ count: Int?, behind start: Int) throws(ConversationFailure) -> (StoreReply, length: Int)? {
        guard let count, count >= -1 else { throw ConversationFailure("a length that is none") }
        if count == -1 { return (.nothing, 0) }
        guard count <= Self.maximumValueLength else { throw ConversationFailure("a value that is too long") }
        guard incoming.count - start >= count + 2 else { return nil }
        let end = start + count
        guard incoming[end] == UInt8(ascii: "\r"), incoming[end + 1] == UInt8(ascii: "\n") else {
            throw ConversationFailure("a value that is not as long as it says")
        }
        return (.value(Array(incoming[start..<end])), count + 2)
    }

    /// The octets up to the next end of line; nil if there is none yet.
    private func line(at start: Int) throws(ConversationFailure) -> ArraySlice<UInt8>? {
        let end = min(incoming.count, start + Self.maximumLineLength + 2)
        for index in start..<max(start, end - 1) where incoming[index] == UInt8(ascii: "\r") {
            guard incoming[index + 1] == UInt8(ascii: "\n") else { throw ConversationFailure("a line without its end") }
            return incoming[start..<index]
        }
        guard incoming.count - start < Self.maximumLineLength + 2 else {
            throw ConversationFailure("a line that is too long")
        }
        return nil
    }

    /// A decimal integer of at most 18 digits, so that it cannot overflow.
    private static func number(_ text: ArraySlice<UInt8>) -> Int? {
        let isNegative = text.first == UInt8(ascii: "-")
        let digits = isNegative ? text.dropFirst() : text
        guard 1...18 ~= digits.count, digits.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }) else { return nil }
        let value = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        return isNegative ? -value : value
    }
}

/// The reply to one command.
package enum StoreReply: Equatable, Sendable {
    /// The command was carried out.
    case done
    case value([UInt8])
    /// There is no such key, or the condition of a SET was not met.
    case nothing
    case error(StoreError)
}

/// Why a store refuses a command, by the first word of its reply, since the rest may contain a key or a user's name.
package struct StoreError: Equatable, Sendable {
    /// One of ``reasons``.
    let word: String

    package static let denied = StoreError(word: "DENIED")
    package static let wrongType = StoreError(word: "WRONGTYPE")
    /// The error for any other word.
    static let other = StoreError(word: "ERR")

    /// Why a store is unusable, in words.
    package var text: String { "\(Self.reasons[word, default: ""]) (\(word))" }

    /// The reasons by the first words of replies.
    static let reasons = [
        "LOADING": "it still reads its data",
        "OOM": "its memory is full",
        "READONLY": "it is a read-only replica",
        "NOAUTH": "it asks for a password",
        "DENIED": "it has no password and so serves its own machine alone: give it one, or protected-mode no",
        "WRONGPASS": "it refuses user or password",
        "NOPERM": "its access list does not permit it",
        "WRONGTYPE": "the key holds something else",
        "MOVED": "it is a cluster, which is not supported",
        "CLUSTERDOWN": "its cluster is down",
        "MASTERDOWN": "its primary is gone",
        "BUSY": "it runs a script",
        "MISCONF": "it cannot save its data",
        "NOREPLICAS": "it has too few replicas",
        "ERR": "it refuses the command",
    ]
}

extension StoreError {
    /// - Parameter line: An error's reply.
    init(_ line: ArraySlice<UInt8>) {
        let word = String(decoding: line.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)
        self = Self.reasons[word] == nil ? .other : StoreError(word: word)
    }
}
