import Base
import DNSWire

/// Whether questions that are not cached can be expected to be answered, by those that failed because no server answered.
///
/// | what no server answered | failed before, in a row | becomes |
/// | --- | --- | --- |
/// | a question | none, or this one | in doubt: the daemon asks a question of its own when its readiness is looked at |
/// | another question | one | in doubt |
/// | a third question | two others | lost |
/// | the daemon's own question | one or two others | lost |
/// | the daemon's own question, as a client's | none | in doubt |
///
/// A server that answers ends the row. A single name that no server answers is never more than a doubt.
struct Readiness {
    /// The different questions that failed in a row.
    private var failed: [Flight.Key] = []
    private var ownFailed = false
    /// Answers of servers when the last of them failed.
    private var answers: UInt64 = 0

    /// So many different questions in a row are no accident.
    static let failures = 3
    /// The name servers of the root, which every resolver knows.
    static let own = Flight.Key(name: NameKey(.root), type: .ns, audience: .plain)

    init() {}

    /// No server answered a question.
    /// - Parameter answers: Answers of servers since the start.
    mutating func failed(_ key: Flight.Key, answers: UInt64) {
        if answers != self.answers { (failed, ownFailed) = ([], false) }
        self.answers = answers
        if key == Self.own, !failed.isEmpty {
            ownFailed = true
        } else if failed.count < Self.failures, !failed.contains(key) {
            failed.append(key)
        }
    }

    /// Whether a question has failed and no server has answered since.
    func isInDoubt(answers: UInt64) -> Bool { !failed.isEmpty && answers == self.answers }

    /// Whether questions fail, and not those for one name alone.
    func isLost(answers: UInt64) -> Bool {
        isInDoubt(answers: answers) && (ownFailed || failed.count == Self.failures)
    }
}
