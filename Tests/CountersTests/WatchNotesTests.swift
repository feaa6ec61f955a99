import Base
import DNSWire
import Synchronization
import Testing

@testable import Counters

@Suite struct WatchNotesTests {
    private static let some = Watched(
        at: 1_700_000_000_123_456, took: 4_567, client: .v4(192, 0, 2, 7), isStream: false, type: .aaaa,
        code: .nxDomain,
        by: .cache)
    private static let someName = Name("www.example.com")

    /// What a frame says, with the texts that are in the octets.
    private enum Said: Equatable {
        case answered(Watched, Name?)
        case dropped(UInt64)

        init?(_ octets: [UInt8], at offset: Int = 0) {
            guard let frame = WatchFrame(octets.span, at: offset) else { return nil }
            func text(_ range: Range<Int>) -> String { String(decoding: octets[range], as: UTF8.self) }
            let by: Watched.By
            switch frame.kind {
            case .cache: by = .cache
            case .stale: by = .stale
            case .hosts: by = .hosts
            case .daemon: by = .daemon
            case .nobody: by = .nobody
            case .server: by = .server(group: text(frame.group), text(frame.server))
            case .dropped:
                self = .dropped(frame.count)
                return
            }
            self = .answered(
                Watched(
                    at: frame.at, took: frame.took, client: frame.client, isStream: frame.isStream, type: frame.type,
                    code: frame.code, by: by),
                frame.name.isEmpty
                    ? nil : Name(wire: octets.span, at: frame.name.lowerBound, length: frame.name.count))
        }
    }

    private static func frames(_ octets: [UInt8]) -> [Said?] {
        var all: [Said?] = []
        var offset = 0
        while let length = WatchFrame.length(octets.span, at: offset) {
            all.append(Said(octets, at: offset))
            offset += length
        }
        #expect(offset == octets.count)
        return all
    }

    private static func append(_ watched: Watched, _ name: Name? = someName, to octets: inout [UInt8]) {
        let wire = name?.wire ?? []
        WatchFrame.append(watched, name: wire.span, to: &octets)
    }

    private static func length(_ octets: [UInt8]) -> Int? { WatchFrame.length(octets.span, at: 0) }

    private static func add(_ watched: Watched, to page: inout WatchNotes.Page) {
        let wire = someName?.wire ?? []
        page.add(watched, name: wire.span)
    }

    @Test func aFrameHoldsAllThatIsKnown() {
        var all: [(Watched, Name?)] = []
        for by in [
            Watched.By.cache, .stale, .hosts, .daemon, .nobody, .server(group: "office", "tls://10.1.0.53"),
            .server(group: "", ""),
        ] {
            var one = Self.some
            one.by = by
            all.append((one, Self.someName))
        }
        all[1].0.client = IPAddress(v6: .max, 1)
        all[2].0.isStream = true
        all[3].1 = nil
        all[4].1 = Name(String(repeating: "a23456789.", count: 25))
        all[5].1 = .root
        all[6].0.code = ResponseCode(rawValue: 4095)
        var octets: [UInt8] = []
        for one in all { Self.append(one.0, one.1, to: &octets) }
        WatchFrame.append(dropped: .max, to: &octets)
        #expect(Self.frames(octets) == all.map { .answered($0.0, $0.1) } + [.dropped(.max)])
    }

    @Test func aLongTextIsCut() throws {
        var one = Self.some
        one.by = .server(group: String(repeating: "g", count: 300), String(repeating: "s", count: 1000))
        var octets: [UInt8] = []
        Self.append(one, to: &octets)
        #expect(octets.count <= WatchFrame.maximumLength)
        one.by = .server(group: String(repeating: "g", count: 255), String(repeating: "s", count: 255))
        #expect(Self.frames(octets) == [.answered(one, Self.someName)])
    }

    @Test func whatIsNoFrameIsNone() {
        var octets: [UInt8] = []
        Self.append(Self.some, to: &octets)
        for count in octets.indices { #expect(Self.length(Array(octets[..<count])) == nil) }
        // Another kind, and lengths that do not add up.
        for (place, octet) in [(2, 99), (0, octets[0] - 1), (40, 200), (41, 1), (42, 255)] {
            var wrong = octets
            wrong[place] = octet
            #expect(Said(wrong) == nil, "\(place)")
        }
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
        #expect(notes.take(&taken) == 0 && Self.frames(taken) == [.answered(Self.some, Self.someName)])
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
