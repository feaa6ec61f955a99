import Base
import Counters
import DNSWire
import Testing
import Transport

@testable import Control

@Suite struct WatchTests {
    private static func watched(
        _ name: String? = "www.example.com", _ type: RecordType = .a, _ code: ResponseCode = .noError,
        by: Watched.By = .cache, took: UInt64 = 21_400, client: IPAddress = .v4(127, 0, 0, 1),
        over transport: Tally.Transport = .udp,
        at: UInt64 = 1_700_000_000_007_089, way: Exposure = .none, reason: String = ""
    ) -> Watched {
        let wire = name.flatMap { Name($0)?.wire } ?? []
        return Watched(
            at: at, took: took, client: client, transport: transport, name: wire, type: type, code: code, by: by,
            way: way, reason: reason)
    }

    private static func lines(_ form: WatchText.Form, _ questions: [Watched]) -> [String] {
        var text = WatchText(form) { TimeText(utc: $0) }
        let lines = questions.map { text.line($0) }.joined()
        #expect(lines.last == "\n")
        return lines.split(separator: "\n").map(String.init)
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
                Self.watched(
                    "a.example", .a, .servFail, by: .noServer, reason: "office: tls://10.1.0.53: timed\u{1B}out"),
            ])
        #expect(
            lines == [
                "22:13:20.007  127.0.0.1  udp  www.example.com           A      cache  NOERROR     21 µs",
                "22:13:20.007  192.0.2.177  udp  mail.corp.example         AAAA   office tls://10.1.0.53  NXDOMAIN    21 ms",
                "22:13:20.007  127.0.0.1    udp  -                         -      daemon                  FORMERR     1.5 s",
                "22:13:20.007  127.0.0.1    udp  a.example                 A      nobody                  SERVFAIL    21 µs  office: tls://10.1.0.53: timed?out",
            ])
    }

    @Test func coloursStandAroundWordsAlone() {
        let questions = [Self.watched(), Self.watched(by: .noServer, took: 3_800_000_000)]
        let coloured = Self.lines(.coloured, questions)
        #expect(coloured[0].contains("\u{1B}[32mNOERROR\u{1B}[0m ") && coloured[0].contains("\u{1B}[2mcache\u{1B}[0m"))
        #expect(coloured[1].contains("\u{1B}[31mnobody\u{1B}[0m") && coloured[1].hasSuffix("\u{1B}[33m3.8 s\u{1B}[0m"))
        let stripped = coloured.map { $0.replacing(/\u{1B}\[\d*m/, with: "") }
        #expect(stripped == Self.lines(.plain, questions))
    }

    @Test func whatIsDroppedIsTold() {
        let plain = WatchText(.plain)
        #expect(plain.dropped(1) == "… 1 question is not shown: they came faster than this was read\n")
        #expect(plain.dropped(20) == "… 20 questions are not shown: they came faster than this was read\n")
        #expect(WatchText(.coloured).dropped(1) == "\u{1B}[33m\(plain.dropped(1).dropLast())\u{1B}[0m\n")
        #expect(WatchText(.json).dropped(20) == "{\"dropped\":20}\n")
    }

    @Test func programsGetJSON() {
        #expect(
            Self.lines(
                .json,
                [
                    Self.watched(),
                    Self.watched(
                        "a\\.b.example", .https, .servFail, by: .server(group: "office", "x\"y"),
                        took: 1_234_567_890, client: IPAddress(v6: 0, 1), over: .tcp, way: .clear,
                        reason: "no \"answer\""),
                    Self.watched(nil, by: .noServer), Self.watched("ads.example", .a, .nxDomain, by: .group("ads")),
                ]) == [
                    #"{"time":"2023-11-14T22:13:20.007089Z","client":"127.0.0.1","transport":"udp","name":"www.example.com","type":"A","by":"cache","group":null,"server":null,"way":"cache","rcode":"NOERROR","reason":null,"milliseconds":0.021}"#,
                    #"{"time":"2023-11-14T22:13:20.007089Z","client":"::1","transport":"tcp","name":"a\\.b.example","type":"HTTPS","by":"server","group":"office","server":"x\"y","way":"clear","rcode":"SERVFAIL","reason":"no \"answer\"","milliseconds":1234.567}"#,
                    #"{"time":"2023-11-14T22:13:20.007089Z","client":"127.0.0.1","transport":"udp","name":null,"type":null,"by":"nobody","group":null,"server":null,"way":"cache","rcode":"NOERROR","reason":null,"milliseconds":0.021}"#,
                    #"{"time":"2023-11-14T22:13:20.007089Z","client":"127.0.0.1","transport":"udp","name":"ads.example","type":"A","by":"group","group":"ads","server":null,"way":"cache","rcode":"NXDOMAIN","reason":null,"milliseconds":0.021}"#,
                ])
    }

    @Test("questions of one fetch come in order, none twice, in slices that take a core for a moment only")
    func slices() {
        for (count, size, number) in [(0, 0, 0), (1, 1, 1), (16, 16, 1), (17, 16, 2), (512, 21, 25), (2_560, 103, 25)] {
            let questions = (0..<count).map { Self.watched(at: UInt64($0)) }
            var slices = WatchSlices(questions)
            var taken: [ArraySlice<Watched>] = []
            while !slices.isEmpty { taken.append(slices.next()) }
            #expect(taken.count == number)
            #expect(taken.map(\.count).max() ?? 0 == size)
            #expect(taken.flatMap(\.self) == questions)
        }
        var slices = WatchSlices((0..<40).map { _ in Self.watched() })
        #expect(slices.next().count == 16 && slices.rest().count == 24 && slices.isEmpty)
        #expect(slices.next().isEmpty)
    }

    @Test("no octet that a terminal could take for a command comes through, whatever the name")
    func hostileNames() {
        let wire: [UInt8] = [5, 0x1B, 0x5B, 0x32, 0x4A, 0x07, 4, 0x9B, 0x0A, 0x00, 0x7F, 0]
        var one = Self.watched(by: .server(group: "g\u{1B}", "s\u{9B}\n"), reason: "r\u{1B}[2J\u{9B}\n")
        one.name = wire
        for form in [WatchText.Form.plain, .json] {
            let lines = Self.lines(form, [one])
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
            ("slower=0", true), ("way=encrypted", true), ("way=clear", false), ("way=clear&way=encrypted", true),
            ("way=cache", false), ("way=loopback", false), ("name=com&type=AAAA", false),
            ("name=com&type=A&by=httpdns&slower=1.5", true),
        ])
    func filters(_ query: String, _ holds: Bool) throws {
        let one = Self.watched(by: .server(group: "httpdns", "119.29.29.99:443"), took: 21_400_000, way: .encrypted)
        let filter = try #require(WatchFilter(RequestTarget(Array("/watch?\(query)".utf8))))
        #expect(filter.holds(one) == holds)
        #expect(WatchFilter(RequestTarget(ControlRoute.watch.target(filter.parameters))) == filter)
    }

    @Test func aMessageWithoutAQuestionHasNeitherNameNorType() throws {
        for (query, holds) in [("name=.", false), ("type=A", false), ("code=FORMERR", true)] {
            let filter = try #require(WatchFilter(RequestTarget(Array("/watch?\(query)".utf8))))
            #expect(filter.holds(Self.watched(nil, .a, .formErr, by: .daemon)) == holds, "\(query)")
        }
    }

    @Test(arguments: [
        "name=a..b", "type=NOPE", "code=RCODE4096", "code=x", "client=1.2.3", "slower=-1", "slower=nan", "way=none",
        "way=",
    ])
    func whatCannotBeReadIsNoFilter(_ query: String) {
        #expect(WatchFilter(RequestTarget(Array("/watch?\(query)".utf8))) == nil)
    }

    @Test(
        "what is no name is some text, and does no harm",
        arguments: [[1], [63, 97, 0], [0, 0], [200, 1, 2], [1, 97, 255, 98, 0]])
    func noName(_ wire: [UInt8]) {
        var one = Self.watched()
        one.name = wire
        for form in [WatchText.Form.plain, .json] { #expect(Self.lines(form, [one]).count == 1) }
    }
}
