import Synchronization

/// The notes of one queue about its answered questions, for the clients of `watch`. Without such a client, no note is
/// taken and no memory used.
///
/// The queue never waits: a note without room, or while the notes are in use, is dropped and counted.
package final class WatchNotes: Sendable {
    private let isOpen = Atomic(false)
    private let page = Mutex(Page())
    /// Questions that were dropped because the page was in use.
    private let missed = Atomic<UInt64>(0)

    /// Notes without a watcher.
    package init() {}

    /// Whether any client watches: the only check for each batch of questions.
    @inline(__always)
    package var isWatched: Bool { isOpen.load(ordering: .relaxed) }

    /// Notes some questions. Called by the queue that answers them.
    /// - Parameters:
    ///   - count: The number of questions.
    ///   - write: Adds each question to the page.
    package func note(_ count: Int, _ write: (inout Page) -> Void) {
        guard page.withLockIfAvailable({ write(&$0) }) == nil else { return }
        missed.add(UInt64(count), ordering: .relaxed)
    }

    /// The notes since they were last taken.
    package struct Page: Sendable {
        fileprivate var isOpen = false
        fileprivate var questions: [Watched] = []
        fileprivate var dropped: UInt64 = 0

        /// Adds a question, or counts it if the page is full.
        package mutating func add(_ question: Watched) {
            guard isOpen else { return }
            if questions.count < WatchNotes.capacity {
                questions.append(question)
            } else {
                dropped += 1
            }
        }
    }

    /// The most questions that wait to be taken. At twenty pages a second they are more than a person can read, and as
    /// many as can be formatted beside the work on answers.
    static let capacity = 512

    // MARK: For the loop that takes the notes

    /// Begins to note questions.
    package func open() {
        _ = missed.exchange(0, ordering: .relaxed)
        page.withLock { $0 = Page(isOpen: true) }
        isOpen.store(true, ordering: .releasing)
    }

    /// Ends the notes and drops the present ones.
    package func close() {
        isOpen.store(false, ordering: .relaxed)
        page.withLock { $0 = Page() }
    }

    /// Takes the notes, in order, with the number of questions dropped meanwhile.
    package func take() -> (questions: [Watched], dropped: UInt64) {
        page.withLock { page in
            defer { (page.questions, page.dropped) = ([], 0) }
            return (page.questions, page.dropped + missed.exchange(0, ordering: .relaxed))
        }
    }
}
