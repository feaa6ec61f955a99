import Base
import DNSWire
import Synchronization
import Testing

@testable import Counters

@Suite struct WatchNotesTests {
    private static let some = Watched(
        at: 1_700_000_000_123_456, took: 4_567, client: .v4(192, 0, 2, 7), isStream: false,
        name: Name("www.example.com"),
        type: .aaaa, code: .nxDomain, by: .cache)

    private static func frames(_ octets: [UInt8]) -> [WatchFrame?] {
        var all: [WatchFrame?] = []
        var offset = 0
        while let length = WatchFrame.length(octets.span, at: offset) {
            all.append(WatchFrame(octets.span.extracting(offset..<offset + length)))
            offset += length
        }
        #expect(offset == octets.count)
        return all
    }

    private static func append(_ watched: Watched, to octets: inout [UInt8]) {
        let wire = watched.name?.wire ?? []
        WatchFrame.append(watched, name: wire.span, to: &octets)
    }

    private static func frame(_ octets: [UInt8]) -> WatchFrame? { WatchFrame(octets.span) }
    private static func length(_ octets: [UInt8]) -> Int? { WatchFrame.length(octets.span, at: 0) }

    private static func add(_ watched: Watched, to page: inout WatchNotes.Page) {
        let wire = watched.name?.wire ?? []
        page.add(watched, name: wire.span)
    }

    @Test func aFrameHoldsAllThatIsKnown() {
        var all: [Watched] = []
        for by in [
            Watched.By.cache, .stale, .hosts, .daemon, .nobody, .server(group: "office", "tls://10.1.0.53"),
            .server(group: "", ""),
        ] {
            var one = Self.some
            one.by = by
            all.append(one)
        }
        all[1].client = IPAddress(v6: .max, 1)
        all[2].isStream = true
        all[3].name = nil
        all[4].name = Name(String(repeating: "a23456789.", count: 25))
        all[5].name = .root
        all[6].code = ResponseCode(rawValue: 4095)
        var octets: [UInt8] = []
        for one in all { Self.append(one, to: &octets) }
        WatchFrame.append(dropped: .max, to: &octets)
        #expect(Self.frames(octets) == all.map { .answered($0) } + [.dropped(.max)])
    }

    @Test func aLongTextIsCut() throws {
        var one = Self.some
        one.by = .server(group: String(repeating: "g", count: 300), String(repeating: "s", count: 1000))
        var octets: [UInt8] = []
        Self.append(one, to: &octets)
        #expect(octets.count <= WatchFrame.maximumLength)
        one.by = .server(group: String(repeating: "g", count: 255), String(repeating: "s", count: 255))
        #expect(Self.frames(octets) == [.answered(one)])
    }

    @Test func whatIsNoFrameIsNone() {
        var octets: [UInt8] = []
        Self.append(Self.some, to: &octets)
        for count in octets.indices {
            let cut = Array(octets[..<count])
            #expect(Self.frame(cut) == nil && Self.length(cut) == nil)
        }
        octets[2] = 99
        #expect(Self.frame(octets) == nil)
        // A length below the shortest would never lead on.
        #expect(Self.length([UInt8](repeating: 0, count: 100)) == WatchFrame.headLength)
    }

    @Test func nothingIsNotedWhileNobodyWatches() {
        let notes = WatchNotes()
        #expect(!notes.isWatched)
        notes.note(1) { Self.add(Self.some, to: &$0) }
        notes.open()
        #expect(notes.isWatched)
        var taken: [UInt8] = []
        #expect(notes.take(&taken) == 0 && taken.isEmpty)
        notes.note(1) { Self.add(Self.some, to: &$0) }
        notes.close()
        notes.note(1) { Self.add(Self.some, to: &$0) }
        notes.open()
        #expect(notes.take(&taken) == 0 && taken.isEmpty)
    }

    @Test func whatFindsNoRoomIsCounted() {
        let notes = WatchNotes()
        notes.open()
        for _ in 0..<20_000 { notes.note(1) { Self.add(Self.some, to: &$0) } }
        var taken: [UInt8] = []
        let dropped = notes.take(&taken)
        let count = Self.frames(taken).count
        #expect(count > 5000 && dropped == UInt64(20_000 - count))
        notes.note(1) { Self.add(Self.some, to: &$0) }
        #expect(notes.take(&taken) == 0 && Self.frames(taken) == [.answered(Self.some)])
    }

    @Test("a queue that notes beside one that takes: each question is there or counted")
    func twoQueues() async {
        let notes = WatchNotes()
        notes.open()
        let isDone = Atomic(false)
        let total = 200_000
        async let writer: Void = Task.detached {
            for _ in 0..<total / 4 {
                notes.note(4) { page in for _ in 0..<4 { Self.add(Self.some, to: &page) } }
            }
            isDone.store(true, ordering: .releasing)
        }.value
        var (seen, dropped) = (0, UInt64(0))
        var taken: [UInt8] = []
        var isLast = false
        while !isLast {
            isLast = isDone.load(ordering: .acquiring)
            dropped += notes.take(&taken)
            seen += Self.frames(taken).count
        }
        await writer
        #expect(seen + Int(dropped) == total)
    }
}
