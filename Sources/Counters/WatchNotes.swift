import Base
import DNSWire
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
        fileprivate var frames: [UInt8] = []
        fileprivate var dropped: UInt64 = 0

        /// - Parameter name: in wire form; empty if there is none.
        package mutating func add(_ watched: borrowing Watched, name: Span<UInt8>) {
            guard isOpen else { return }
            guard frames.count <= WatchNotes.capacity - WatchFrame.maximumLength else {
                dropped += 1
                return
            }
            WatchFrame.append(watched, name: name, to: &frames)
        }
    }

    /// The most octets that wait to be taken: some 8000 questions, of which there are several pages a second.
    private static let capacity = 512 * 1024

    // MARK: For the loop that takes the notes

    package func open() {
        _ = missed.exchange(0, ordering: .relaxed)
        page.withLock {
            $0 = Page(isOpen: true)
            $0.frames.reserveCapacity(Self.capacity)
        }
        isOpen.store(true, ordering: .releasing)
    }

    package func close() {
        isOpen.store(false, ordering: .relaxed)
        page.withLock { $0 = Page() }
    }

    /// Exchanges the notes for an empty page.
    /// - Parameter frames: those taken before, whose memory is used again; afterwards the new ones, in order.
    /// - Returns: how many questions were dropped meanwhile.
    package func take(_ frames: inout [UInt8]) -> UInt64 {
        frames.removeAll(keepingCapacity: true)
        frames.reserveCapacity(Self.capacity)
        let dropped = page.withLock { page in
            swap(&page.frames, &frames)
            return exchange(&page.dropped, with: 0)
        }
        return dropped + missed.exchange(0, ordering: .relaxed)
    }
}
