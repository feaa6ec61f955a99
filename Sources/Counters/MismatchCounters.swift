/// Counts of messages that came while an answer was awaited and were not that answer, since the start: an attacker
/// guesses, or a resolver is broken. Such messages are ignored, and the wait goes on.
package struct MismatchCounters: Sendable, Equatable {
    /// ICMP errors that quote no query of the port, or do not report that the resolver's port is closed.
    package var errors: UInt64 = 0
    /// Messages with another ID, or about another question than the query's.
    package var otherQuery: UInt64 = 0
    /// Messages that cannot be read.
    package var malformed: UInt64 = 0
    /// Answers that differ only in the case of letters (0x20).
    package var otherCase: UInt64 = 0

    /// All counts are 0.
    package init() {}

    /// Adds the counts of another upstream.
    package mutating func add(_ other: MismatchCounters) {
        errors += other.errors
        otherQuery += other.otherQuery
        malformed += other.malformed
        otherCase += other.otherCase
    }

    /// Messages of all kinds.
    package var all: UInt64 { errors + otherQuery + malformed + otherCase }
}
