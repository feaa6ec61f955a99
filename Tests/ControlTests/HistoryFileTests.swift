import Base
import Counters
import DNSCache
import Foundation
import ShellTestSupport
import Testing
import Transport

@testable import Control

@Suite struct HistoryFileTests {
    private static let second: UInt64 = 1_000_000_000
    private static let then = DNSCache.Moment(wall: 1_700_000_000, tick: 50_000, boot: 77)

    private static func questions(_ asked: UInt64) -> Hour.Questions {
        Hour.Questions(
            asked: asked, encrypted: asked / 2, loopback: 1, clear: asked / 4, failed: asked / 8, billed: 2 * asked)
    }

    /// Three steps of each width, the last of them under way for 100 s.
    private static var record: HistoryRecord {
        HistoryRecord(
            written: then,
            History.widths.map { Course(width: $0, steps: [8, 16, 40].map(questions), elapsed: 100) })
    }

    private static func observation(at nanoseconds: UInt64, asked: UInt64 = 0, failed: UInt64 = 0) -> Observation {
        var observation = Observation(DNSCache(bytes: 1 << 20, seed: (1, 2)).statistics)
        let listener = Tally(.udp)
        for _ in 0..<asked { listener.asked(nil, fromIPv4: true) }
        for _ in 0..<failed { listener.answered(flags: 2) }
        observation.add([listener], Tally(.udp))
        observation.at = Tick(nanoseconds: nanoseconds)
        return observation
    }

    /// What is asked in each step, of either width, when the daemon starts at such a moment, a second after the machine or late.
    private static func asked(at moment: DNSCache.Moment, now: UInt64 = second) throws -> [[UInt64]] {
        let record = try #require(HistoryRecord(record.octets))
        let past = record.history(at: now, moment).past(observation(at: now, asked: 1))
        return past.map { $0.steps.map(\.asked) }
    }

    @Test("what was written is read again")
    func roundTrip() throws {
        let record = try #require(HistoryRecord(Self.record.octets))
        #expect(record.written == Self.then && record.past == Self.record.past)
        let unknown = HistoryRecord(written: DNSCache.Moment(wall: 1, tick: 2), Self.record.past)
        #expect(HistoryRecord(unknown.octets)?.written == unknown.written)
        let full = History.widths.map { width in
            Course(width: width, steps: (0...UInt64(width.most)).map(Self.questions), elapsed: width.seconds - 1)
        }
        let longest = HistoryRecord(written: Self.then, full).octets
        #expect(longest.count == HistoryRecord.mostOctets && HistoryRecord(longest)?.past == full)
    }

    @Test("it goes on where it has ended, by the time that has passed, and whatever the wall clock was set to")
    func goesOn() throws {
        func later(_ seconds: UInt32, wall: UInt64? = nil, boot: UInt128? = 77) -> DNSCache.Moment {
            DNSCache.Moment(wall: wall ?? Self.then.wall + UInt64(seconds), tick: Self.then.tick + seconds, boot: boot)
        }
        // In the same step: what is asked now is added to it.
        #expect(try Self.asked(at: later(199)) == [[8, 16, 41], [8, 16, 41]])
        #expect(try Self.asked(at: later(200)) == [[8, 16, 40, 1], [8, 16, 41]])
        #expect(try Self.asked(at: later(900)) == [[8, 16, 40, 0, 0, 1], [8, 16, 41]])
        // The wall clock says nothing while the machine runs.
        for wall: UInt64 in [0, 1, .max] {
            #expect(try Self.asked(at: later(200, wall: wall)) == [[8, 16, 40, 1], [8, 16, 41]])
        }
        // After a start of the machine there is no other, whether it goes on while the machine is off or not.
        for countsWhileOff in [true, false] {
            let restarted = DNSCache.Moment(
                wall: Self.then.wall + 3500, tick: 5, boot: 78, countsWhileOff: countsWhileOff)
            #expect(try Self.asked(at: restarted)[1] == [8, 16, 40, 1])
        }
        // Back: no time has passed.
        let back = DNSCache.Moment(wall: 0, tick: 5, boot: 78)
        #expect(try Self.asked(at: back) == [[8, 16, 41], [8, 16, 41]])
        // Far ahead: nothing of it is less than 24 hours or 30 days old.
        for wall in [Self.then.wall + 31 * 86_400, .max] {
            let ahead = DNSCache.Moment(wall: wall, tick: 5, boot: 78)
            #expect(try Self.asked(at: ahead) == [[1], [1]])
        }
        let days = DNSCache.Moment(wall: Self.then.wall + 2 * 86_400, tick: 5, boot: 78)
        let kept = try Self.asked(at: days)
        #expect(kept[0] == [1] && kept[1].count == 3 + 48 && Array(kept[1].prefix(3)) == [8, 16, 40])
    }

    @Test("a step that is over is kept, and one in which the machine slept")
    func time() throws {
        var history = try #require(HistoryRecord(Self.record.octets)).history(at: Self.second, Self.then)
        let end = 201 * Self.second
        func isOver(_ now: UInt64) -> Bool { history.isOver(at: now) }
        #expect(!isOver(end - 140 * Self.second - 1) && history.next == 61 * Self.second)
        #expect(isOver(end))
        let hasGrown = history.take(Self.observation(at: end, asked: 2, failed: 1))
        #expect(hasGrown)
        let past = history.past(Self.observation(at: end + Self.second, asked: 5, failed: 1))
        #expect(past[0].steps.map(\.asked) == [8, 16, 42, 3] && past[0].elapsed == 1)
        #expect(past[0].steps.map(\.failed) == [1, 2, 6, 0])
        #expect(past[1].steps.map(\.asked) == [8, 16, 45] && past[1].elapsed == 301)
        #expect(past[1].age == 301 + 2 * 3600)
        let next = isOver(end + 60 * Self.second)
        let isKept = history.take(Self.observation(at: end + 60 * Self.second))
        #expect(next && !isKept)
        let night = isOver(end + 8 * 3600 * Self.second)
        let wasKept = history.take(Self.observation(at: end + 8 * 3600 * Self.second, asked: 5))
        #expect(night && wasKept)
        #expect(history.past(Self.observation(at: end + 8 * 3600 * Self.second, asked: 5))[0].steps.count == 4 + 96)
    }

    @Test("the version before, which has not counted names that are billed, is read")
    func version1() throws {
        var octets = Array("httpdnsd-history".utf8)
        for (number, width) in [(1, 4), (50_000, 4), (1_700_000_000, 8), (0, 8), (77, 8)] as [(UInt64, Int)] {
            octets.append(number, octets: width)
        }
        for _ in History.widths {
            octets.append(100, octets: 4)
            octets.append(3, octets: 4)
            for asked: UInt64 in [8, 16, 40] {
                for number in [asked, asked / 2, 1, asked / 4, asked / 8] { octets.append(number, octets: 8) }
            }
        }
        octets.append(HistoryRecord.checksum(octets[...]), octets: 8)
        let record = try #require(HistoryRecord(octets))
        var expected = Self.record.past.map(\.steps)
        for width in expected.indices { for step in expected[width].indices { expected[width][step].billed = 0 } }
        #expect(record.written == Self.then && record.past.map(\.steps) == expected)
    }

    @Test("octets that were not written so are no history, whatever they are")
    func hostile() {
        let octets = Self.record.octets
        for length in 0..<octets.count { #expect(HistoryRecord(Array(octets[..<length])) == nil) }
        #expect(HistoryRecord(octets + [0]) == nil)
        for index in octets.indices {
            var changed = octets
            changed[index] ^= 1 << (index % 8)
            #expect(HistoryRecord(changed) == nil)
        }
        // With a checksum that is right.
        func courses(_ change: (inout Hour.Questions) -> Void) -> [Course] {
            var questions = Hour.Questions()
            change(&questions)
            return History.widths.map { Course(width: $0, steps: [questions], elapsed: 0) }
        }
        #expect(HistoryRecord(written: Self.then, []).octets.count < octets.count)
        #expect(HistoryRecord(HistoryRecord(written: Self.then, []).octets) == nil)
        let late = History.widths.map { Course(width: $0, steps: [Hour.Questions()], elapsed: $0.seconds) }
        #expect(HistoryRecord(HistoryRecord(written: Self.then, late).octets) == nil)
        let none = History.widths.map { Course(width: $0, steps: [], elapsed: 0) }
        #expect(HistoryRecord(HistoryRecord(written: Self.then, none).octets) == nil)
        let many = History.widths.map { width in
            Course(width: width, steps: Array(repeating: Hour.Questions(), count: width.most + 2), elapsed: 0)
        }
        #expect(HistoryRecord(HistoryRecord(written: Self.then, many).octets) == nil)
        // The largest numbers are written as the largest that is believed, of which any sum can be shown.
        let most = courses { $0 = Hour.Questions(asked: .max, clear: .max, failed: .max) }
        let past = HistoryRecord(HistoryRecord(written: Self.then, most).octets)?.history(at: 0, Self.then).past(
            Self.observation(at: 0, asked: 1))
        #expect(past?[0].steps.last?.asked == 1 << 48 + 1)
    }

    @Test("a file that is missing is nothing to speak of; one that is damaged is said once, and replaced")
    func file() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "history-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: "cache").path
        let loop = try EventLoop(label: "test")
        loop.start()
        let lines = LogLines()
        let file = HistoryFile(beside: path, on: loop, moment: { Self.then }, report: lines.report)
        func kept() -> [[UInt64]] {
            file.read(at: 0).past(Self.observation(at: 0)).map { $0.steps.map(\.asked) }
        }
        func save() {
            let gate = Gate()
            file.save(Self.record.past)
            loop.submit { gate.open() }
            #expect(gate.wait())
        }
        #expect(kept() == [[0], [0]] && lines.all.isEmpty)
        save()
        #expect(kept() == [[8, 16, 40], [8, 16, 40]] && lines.all.isEmpty)
        try Data("[Unit]\n".utf8).write(to: URL(filePath: path + ".history"))
        #expect(kept() == [[0], [0]])
        #expect(lines.all == ["warning the history is not taken over: it is damaged, or something else"])
        // What a version to come may write, of which this one knows the first octets alone.
        #expect(
            HistoryRecord.fault(of: Array("httpdnsd-history".utf8) + [0, 0, 0, 3] + Array("whatever".utf8))
                == "it is of version 3, not 2")
        save()
        #expect(kept() == [[8, 16, 40], [8, 16, 40]] && lines.all.count == 1)
        try Data(count: HistoryRecord.mostOctets + 1).write(to: URL(filePath: path + ".history"))
        #expect(kept() == [[0], [0]] && lines.all.count == 2)
        let gate = Gate()
        loop.stop { gate.open() }
        #expect(gate.wait())
    }
}
