import Base
import Counters
import Forwarding
import Synchronization

/// The current frontend, for listeners that must not wait for each other: each has a copy of its own, and checks once a
/// batch by an atomic load whether there is a newer one.
final class CurrentFrontend: Sendable {
    private let current: Mutex<QueryFrontend>
    /// Increases with each change.
    private let generation = Atomic<UInt64>(0)

    init(_ frontend: QueryFrontend) { current = Mutex(frontend) }

    /// May be called from any thread; readers see the change with their next batch.
    func change(_ body: (inout sending QueryFrontend) -> Void) {
        current.withLock { body(&$0) }
        generation.add(1, ordering: .releasing)
    }

    /// The copy of one queue.
    struct Copy: ~Copyable, Sendable {
        private let source: CurrentFrontend
        private var generation: UInt64
        private(set) var current: QueryFrontend

        init(of source: CurrentFrontend) {
            self.source = source
            generation = source.generation.load(ordering: .acquiring)
            current = source.current.withLock { $0 }
        }

        /// Replaces the copy if there is a newer frontend.
        mutating func update() {
            let newest = source.generation.load(ordering: .acquiring)
            guard newest != generation else { return }
            generation = newest
            current = source.current.withLock { $0 }
        }

        /// The source of a client, by the newest frontend; nil: it may not ask.
        mutating func source(ofAllowed client: IPAddress) -> Source? {
            update()
            return current.isAllowed(client) ? current.links.source(of: client) : nil
        }

        /// See ``QueryFrontend/asker(_:over:isProven:)``.
        func asker(_ client: IPAddress, over way: ClientWay, isProven: Bool) -> Asker {
            current.asker(client, over: way, isProven: isProven)
        }

        /// Does both steps for one message: see ``QueryFrontend``. Through this function, since a class that reads
        /// ``current`` twice copies it twice.
        func receive(
            _ message: Span<UInt8>, from address: IPAddress, at now: Tick, limit: Int, tally: Tally,
            into reply: inout MutableSpan<UInt8>
        ) -> QueryFrontend.Outcome {
            current.receive(
                current.read(message), message, from: address, at: now, limit: limit, tally: tally, into: &reply)
        }
    }
}
