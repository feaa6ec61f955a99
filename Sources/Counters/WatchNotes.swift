import Synchronization

/// Where one queue notes the questions that it answers, for the clients of `watch`. While there is none, nothing is noted and no
/// memory held.
///
/// The queue never waits: what finds no room, or finds the notes in use, is dropped and counted.
package final class WatchNotes: Sendable {
    private let isOpen = Atomic(false)
    private let page = Mutex(Page())
    /// Questions that were dropped because the page was in use.
    private let missed = Atomic<UInt64>(0)

    /// Notes that nobody watches yet.
    package init() {}

    /// Whether any client watches: the one thing that is looked at for each batch of questions.
    @inline(__always)
    package var isWatched: Bool { isOpen.load(ordering: .relaxed) }

    /// Writes some questions down. Called by the queue that answers them.
    /// - Parameters:
    ///   - count: how many they are.
    ///   - write: adds each of them to the page.
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

    /// The most questions that wait to be taken. With twenty pages a second that is more than anybody reads, and as much as
    /// can be put into words beside the work on answers.
    static let capacity = 512

    // MARK: For the loop that takes the notes

    /// Has questions noted from now on.
    package func open() {
        _ = missed.exchange(0, ordering: .relaxed)
        page.withLock { $0 = Page(isOpen: true) }
        isOpen.store(true, ordering: .releasing)
    }

    /// Forgets the notes, and has no more of them taken.
    package func close() {
        isOpen.store(false, ordering: .relaxed)
        page.withLock { $0 = Page() }
    }

    /// Takes the notes, in order, and how many questions were dropped meanwhile.
    package func take() -> (questions: [Watched], dropped: UInt64) {
        page.withLock { page in
            defer { (page.questions, page.dropped) = ([], 0) }
            return (page.questions, page.dropped + missed.exchange(0, ordering: .relaxed))
        }
    }
}
