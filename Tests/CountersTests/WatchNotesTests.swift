import Base
import Synchronization
import Testing

@testable import Counters

@Suite struct WatchNotesTests {
    private static let some = Watched(
        at: 1_700_000_000_123_456, took: 4_567, client: .v4(192, 0, 2, 7), transport: .udp, name: [1, 97, 0],
        type: .aaaa, code: .nxDomain, by: .cache)

    @Test func nothingIsNotedWhileNobodyWatches() {
        let notes = WatchNotes()
        #expect(!notes.isWatched)
        notes.note(1) { $0.add(Self.some) }
        notes.open()
        #expect(notes.isWatched)
        #expect(notes.take() == ([], 0))
        notes.note(1) { $0.add(Self.some) }
        notes.close()
        notes.note(1) { $0.add(Self.some) }
        notes.open()
        #expect(notes.take() == ([], 0))
    }

    @Test func whatFindsNoRoomIsCounted() {
        let notes = WatchNotes()
        notes.open()
        for _ in 0..<20_000 { notes.note(1) { $0.add(Self.some) } }
        let taken = notes.take()
        #expect(taken.questions.count == WatchNotes.capacity && taken.dropped == UInt64(20_000 - WatchNotes.capacity))
        notes.note(1) { $0.add(Self.some) }
        #expect(notes.take() == ([Self.some], 0))
    }

    @Test("a queue that notes beside one that takes: each question is there or counted")
    func twoQueues() async {
        let notes = WatchNotes()
        notes.open()
        let isDone = Atomic(false)
        let total = 200_000
        async let writer: Void = Task.detached {
            for _ in 0..<total / 4 {
                notes.note(4) { page in for _ in 0..<4 { page.add(Self.some) } }
            }
            isDone.store(true, ordering: .releasing)
        }.value
        var (seen, dropped) = (0, UInt64(0))
        var isLast = false
        while !isLast {
            isLast = isDone.load(ordering: .acquiring)
            let taken = notes.take()
            seen += taken.questions.count
            dropped += taken.dropped
        }
        await writer
        #expect(seen + Int(dropped) == total)
    }
}
