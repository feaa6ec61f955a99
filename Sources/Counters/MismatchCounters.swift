/// Datagrams that came while an answer was awaited and were not that answer, since the start: an attacker guesses, or a
/// resolver is broken. They are ignored, and the wait goes on.
package struct MismatchCounters: Sendable, Equatable {
    /// Datagrams from another address or port than the resolver's.
    package var strangers: UInt64 = 0
    /// Messages with another id or about another question.
    package var otherQuery: UInt64 = 0
    /// Messages that cannot be read.
    package var malformed: UInt64 = 0
    /// Answers right in everything but the letters' case (0x20).
    package var otherCase: UInt64 = 0

    package init() {}

    package mutating func add(_ other: MismatchCounters) {
        strangers += other.strangers
        otherQuery += other.otherQuery
        malformed += other.malformed
        otherCase += other.otherCase
    }

    package var all: UInt64 { strangers + otherQuery + malformed + otherCase }
}
