import Base
import Counters
import DNSWire
import Testing
import Transport

@testable import Control

@Suite struct WatchTests {
    private static let some = Watched(
        at: 1_700_000_000_007_089, took: 21_400, client: .v4(127, 0, 0, 1), isStream: false, type: .a, code: .noError,
        by: .cache)

    /// Octets of one frame.
    private static func watched(
        _ name: String? = "www.example.com", _ type: RecordType = .a, _ code: ResponseCode = .noError,
        by: Watched.By = .cache, took: UInt64 = 21_400, client: IPAddress = .v4(127, 0, 0, 1), isStream: Bool = false,
        at: UInt64 = 1_700_000_000_007_089
    ) -> [UInt8] {
        let watched = Watched(at: at, took: took, client: client, isStream: isStream, type: type, code: code, by: by)
        let wire = name.map { Name($0)?.wire ?? [] } ?? []
        var octets: [UInt8] = []
        WatchFrame.append(watched, name: wire.span, to: &octets)
        return octets
    }

    private static func dropped(_ count: UInt64) -> [UInt8] {
        var octets: [UInt8] = []
        WatchFrame.append(dropped: count, to: &octets)
        return octets
    }

    private static func lines(_ form: WatchText.Form, _ frames: [[UInt8]]) -> [String] {
        var text = WatchText(form) { TimeText(utc: $0) }
        var octets: [UInt8] = []
        for frame in frames {
            guard let read = WatchFrame(frame.span, at: 0) else {
                Issue.record("\(frame) is no frame")
                continue
            }
            text.append(read, of: frame.span, to: &octets)
        }
        #expect(octets.last == UInt8(ascii: "\n"))
        return String(decoding: octets, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    private static func holds(_ filter: WatchFilter, _ octets: [UInt8]) -> Bool? {
        WatchFrame(octets.span, at: 0).map { filter.holds($0, of: octets.span) }
    }

    @Test func linesStandBelowEachOther() {
        let lines = Self.lines(
            .plain,
            [
                Self.watched(),
                Self.watched(
                    "mail.corp.example", .aaaa, .nxDomain, by: .server(group: "office", "tls://10.1.0.53"),
                    took: 21_400_000, client: .v4(192, 0, 2, 177)),
                Self.watched(nil, .a, .formErr, by: .daemon, took: 1_530_000_000),
            ])
        #expect(
            lines == [
                "22:13:20.007  127.0.0.1  www.example.com           A      cache  NOERROR     21 µs",
                "22:13:20.007  192.0.2.177  mail.corp.example         AAAA   office tls://10.1.0.53  NXDOMAIN    21 ms",
                "22:13:20.007  127.0.0.1    -                         -      daemon                  FORMERR     1.5 s",
            ])
    }

    @Test func coloursStandAroundWordsAlone() {
        let frames = [
            Self.watched(), Self.watched(by: .nobody, took: 3_800_000_000), Self.dropped(3),
        ]
        let coloured = Self.lines(.coloured, frames)
        #expect(coloured[0].contains("\u{1B}[32mNOERROR\u{1B}[0m ") && coloured[0].contains("\u{1B}[2mcache\u{1B}[0m"))
        #expect(coloured[1].contains("\u{1B}[31mnobody\u{1B}[0m") && coloured[1].hasSuffix("\u{1B}[33m3.8 s\u{1B}[0m"))
        let stripped = coloured.map { $0.replacing(/\u{1B}\[\d*m/, with: "") }
        #expect(stripped == Self.lines(.plain, frames))
    }

    @Test func whatIsDroppedIsTold() {
        #expect(
            Self.lines(.plain, [Self.dropped(1), Self.dropped(20)]) == [
                "… 1 question is not shown: they came faster than this was read",
                "… 20 questions are not shown: they came faster than this was read",
            ])
        #expect(Self.lines(.json, [Self.dropped(20)]) == ["{\"dropped\":20}"])
    }

    @Test func programsGetJSON() {
        #expect(
            Self.lines(
                .json,
                [
                    Self.watched(),
                    Self.watched(
                        "a\\.b.example", .https, .servFail, by: .server(group: "office", "x\"y"),
                        took: 1_234_567_890, client: IPAddress(v6: 0, 1), isStream: true),
                    Self.watched(nil, by: .nobody),
                ]) == [
                    #"{"time":"2023-11-14T22:13:20.007089Z","client":"127.0.0.1","transport":"udp","name":"www.example.com","type":"A","by":"cache","group":null,"server":null,"rcode":"NOERROR","milliseconds":0.021}"#,
                    #"{"time":"2023-11-14T22:13:20.007089Z","client":"::1","transport":"tcp","name":"a\\.b.example","type":"HTTPS","by":"server","group":"office","server":"x\"y","rcode":"SERVFAIL","milliseconds":1234.567}"#,
                    #"{"time":"2023-11-14T22:13:20.007089Z","client":"127.0.0.1","transport":"udp","name":null,"type":null,"by":"nobody","group":null,"server":null,"rcode":"NOERROR","milliseconds":0.021}"#,
                ])
    }

    @Test("no octet that a terminal could take for a command comes through, whatever the name")
    func hostileNames() {
        let wire: [UInt8] = [5, 0x1B, 0x5B, 0x32, 0x4A, 0x07, 4, 0x9B, 0x0A, 0x00, 0x7F, 0]
        var one = Self.some
        one.by = .server(group: "g\u{1B}", "s\u{9B}\n")
        var frame: [UInt8] = []
        WatchFrame.append(one, name: wire.span, to: &frame)
        for form in [WatchText.Form.plain, .json] {
            let lines = Self.lines(form, [frame])
            #expect(lines.count == 1)
            #expect(lines[0].unicodeScalars.allSatisfy { $0.value >= 0x20 && $0 != "\u{7F}" }, "\(lines)")
            #expect(form == .json || lines[0].unicodeScalars.allSatisfy { $0.isASCII || $0 == "µ" }, "\(lines)")
        }
    }

    @Test(
        "each kind of filter",
        arguments: [
            ("", true), ("name=example.com", true), ("name=www.example.com.", true), ("name=ww.example.com", false),
            ("name=other.example&name=com", true), ("name=xample.com", false), ("type=A", true), ("type=AAAA", false),
            ("type=AAAA&type=a", true), ("code=NOERROR", true), ("code=servfail", false), ("code=RCODE0", true),
            ("client=127.0.0.0/8", true), ("client=::1", false), ("client=127.0.0.1", true), ("by=httpdns", true),
            ("by=cache", false), ("by=cache&by=httpdns", true), ("slower=20", true), ("slower=22", false),
            ("slower=0", true), ("name=com&type=AAAA", false), ("name=com&type=A&by=httpdns&slower=1.5", true),
        ])
    func filters(_ query: String, _ holds: Bool) throws {
        let one = Self.watched(by: .server(group: "httpdns", "119.29.29.99:443"), took: 21_400_000)
        let filter = try #require(WatchFilter(RequestTarget(Array("/watch?\(query)".utf8))))
        #expect(Self.holds(filter, one) == holds)
        #expect(WatchFilter(RequestTarget(Array("/watch?\(filter.query)".utf8))) == filter)
    }

    @Test func aMessageWithoutAQuestionHasNeitherNameNorType() throws {
        for (query, holds) in [("name=.", false), ("type=A", false), ("code=FORMERR", true)] {
            let filter = try #require(WatchFilter(RequestTarget(Array("/watch?\(query)".utf8))))
            #expect(Self.holds(filter, Self.watched(nil, .a, .formErr, by: .daemon)) == holds, "\(query)")
        }
    }

    @Test(arguments: ["name=a..b", "type=NOPE", "code=RCODE4096", "code=x", "client=1.2.3", "slower=-1", "slower=nan"])
    func whatCannotBeReadIsNoFilter(_ query: String) {
        #expect(WatchFilter(RequestTarget(Array("/watch?\(query)".utf8))) == nil)
    }

    @Test func framesOfSeveralQueuesComeInOrderOfTime() {
        let times: [[UInt64]] = [[1, 5, 5, 9], [], [2, 3, 20], [0]]
        let lists = times.map { times in times.flatMap { Self.watched(at: $0) } }
        var merged = MergedFrames(lists)
        var order: [UInt64] = []
        while let (list, range) = merged.next() {
            let octets = lists[list]
            guard let frame = WatchFrame(octets.span, at: range.lowerBound) else { continue }
            order.append(frame.at)
            #expect(range.count == WatchFrame.length(octets.span, at: range.lowerBound))
        }
        #expect(order == [0, 1, 2, 3, 5, 5, 9, 20])
    }

    @Test("lines made of what was kept are those that are made afresh, whatever came before")
    func whatIsKept() {
        var frames: [[UInt8]] = []
        let servers: [Watched.By] = [
            .cache, .nobody, .server(group: "office", "a"), .server(group: "offic", "ea"), .stale,
        ]
        for round in 0..<2000 as Range<UInt64> {
            // Steps that have no common divisor, so that all sorts of neighbours meet.
            frames.append(
                Self.watched(
                    round % 7 == 0 ? nil : ["a.example", "B.EXAMPLE", "x\\.\\200.example"][Int(round % 3)],
                    [.a, .aaaa, .https][Int(round / 2 % 3)], [.noError, .servFail][Int(round / 3 % 2)],
                    by: servers[Int(round % 5)], took: round % 11 * 99_999 + round * round * 1000 % 2_000_000_000,
                    client: .v4(192, 0, 2, UInt8(round % 200)), isStream: round % 4 == 0,
                    at: 1_700_000_000_000_000 + round * 333_333))
        }
        #expect(Self.lines(.json, frames) == frames.flatMap { Self.lines(.json, [$0]) })
        // The second time all columns are as wide as they get.
        #expect(
            Self.lines(.coloured, frames + frames).suffix(2000)
                == Self.lines(.coloured, frames + frames + frames).suffix(2000))
        #expect(
            Self.lines(.plain, frames + frames).suffix(2000)
                == Self.lines(.coloured, frames + frames).suffix(2000).map { $0.replacing(/\u{1B}\[\d*m/, with: "") })
        let words = Self.lines(.plain, frames).map { $0.split(separator: " ") }
        #expect(words == frames.flatMap { Self.lines(.plain, [$0]) }.map { $0.split(separator: " ") })
    }

    @Test(
        "what is no name is some text, and does no harm",
        arguments: [[1], [63, 97, 0], [0, 0], [200, 1, 2], [1, 97, 255, 98, 0]])
    func noName(_ wire: [UInt8]) {
        var frame: [UInt8] = []
        WatchFrame.append(Self.some, name: wire.span, to: &frame)
        for form in [WatchText.Form.plain, .json] { #expect(Self.lines(form, [frame]).count == 1) }
    }
}
