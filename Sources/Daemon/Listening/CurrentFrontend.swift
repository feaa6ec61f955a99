import Synchronization

/// The frontend that holds at present, for listeners that must not wait for each other: a reader has a copy of its own
/// and looks once a batch, by one atomic load, whether there is a newer one.
final class CurrentFrontend: Sendable {
    private let current: Mutex<QueryFrontend>
    /// Counts the changes.
    private let generation = Atomic<UInt64>(0)

    init(_ frontend: QueryFrontend) { current = Mutex(frontend) }

    /// From any thread; readers have it with the next batch.
    func change(_ body: (inout sending QueryFrontend) -> Void) {
        current.withLock { body(&$0) }
        generation.add(1, ordering: .releasing)
    }

    /// For one queue.
    struct Copy: ~Copyable, Sendable {
        private let source: CurrentFrontend
        private var generation: UInt64
        private(set) var current: QueryFrontend

        init(of source: CurrentFrontend) {
            self.source = source
            generation = source.generation.load(ordering: .acquiring)
            current = source.current.withLock { $0 }
        }

        /// Makes `current` the latest.
        mutating func update() {
            let newest = source.generation.load(ordering: .acquiring)
            guard newest != generation else { return }
            generation = newest
            current = source.current.withLock { $0 }
        }
    }
}
