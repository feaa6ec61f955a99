import DNSWire

/// Whether uncached questions can be expected to be answered, judged by the questions that no server answered.
///
/// | unanswered | failed before, in a row | becomes |
/// | --- | --- | --- |
/// | a question | none, or one for this name | in doubt: the daemon asks a question of its own when its readiness is read |
/// | a question for another name | one | in doubt |
/// | a question for a third name | two others | lost |
/// | the daemon's own question | one or two others | lost |
/// | the daemon's own question, as a client's | none | in doubt |
///
/// An answer of a server ends the row. A single name without an answer is never more than a doubt.
struct Readiness {
    /// The different names whose questions failed in a row.
    private var failed: [NameKey] = []
    private var ownFailed = false
    /// The count of servers' answers at the last failure.
    private var answers: UInt64 = 0

    /// So many names with failed questions in a row are no accident.
    static let failures = 3
    /// The daemon's own question: the root's name servers, which every resolver knows.
    static let own = Flight.Key(name: NameKey(.root), type: .ns, audience: .plain)

    /// Notes a question that no server answered.
    /// - Parameter answers: The number of servers' answers since the start.
    mutating func failed(_ key: Flight.Key, answers: UInt64) {
        if answers != self.answers { (failed, ownFailed) = ([], false) }
        self.answers = answers
        if key == Self.own, !failed.isEmpty {
            ownFailed = true
        } else if failed.count < Self.failures, !failed.contains(key.name) {
            failed.append(key.name)
        }
    }

    /// Whether a question has failed and no server has answered since.
    func isInDoubt(answers: UInt64) -> Bool { !failed.isEmpty && answers == self.answers }

    /// Whether questions fail for more than one name.
    func isLost(answers: UInt64) -> Bool {
        isInDoubt(answers: answers) && (ownFailed || failed.count == Self.failures)
    }
}
