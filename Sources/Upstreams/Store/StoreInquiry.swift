package import Base
package import Forwarding

/// Reads the store's entries for an operator, over the connection of questions. The reads are not counted and nothing
/// is learned from them, and foreign entries are not deleted.
package final class StoreInquiry: Inquiring {
    private let questions: [SharedQuestion]
    private let store: StoreUpstream
    private let end: Tick
    package private(set) var found: [SharedQuestion: StoreLook] = [:]

    /// Milliseconds for all reads together: far more than a question waits, so that a slow store is recognized.
    private static let longest = 1000

    package init(_ questions: [SharedQuestion], in store: StoreUpstream, at now: Tick) {
        (self.questions, self.store) = (questions, store)
        end = now.advanced(milliseconds: Self.longest)
    }

    package func proceed(at now: Tick) {
        for (index, question) in questions.enumerated() {
            store.read(SharedReadID(standalone: UInt32(index)), question) { [weak self] event in
                switch event {
                case .found(_, let finding): self?.end(question, .found(finding))
                case .failed(_, let why): self?.end(question, .failed(why))
                default: break
                }
            }
        }
    }

    private func end(_ question: SharedQuestion, _ look: StoreLook) {
        if found[question] == nil { found[question] = look }
    }

    package var isOver: Bool { found.count == questions.count }

    package var nextDeadline: Tick? { isOver ? nil : end }

    package func expire(at now: Tick) {
        guard end <= now else { return }
        for question in questions { end(question, .failed("no answer within \(Self.longest) ms")) }
    }

    package func close() {}
}
