import Configuration
import Foundation
import Testing

@testable import Log

@Suite struct LogTextTests {
    /// 2026-11-21T11:39:20.007Z
    private let time = 1_795_261_160_007 as UInt64
    private let line = LogText(
        level: .warning, text: "HTTPDNS 192.0.2.1:443 fails: \"no\"\nanswer\u{1B}[2J",
        fields: [("event", "service-fails"), ("nextServer", "192.0.2.2:443"), ("server", "192.0.2.1:443")])

    @Test func forPeopleAndStreams() {
        let text = "HTTPDNS 192.0.2.1:443 fails: \"no\" answer [2J"
        #expect(line.text(.prefixed, at: time) == "<4>\(text)")
        #expect(line.text(.dated, at: time) == "2026-11-21T11:39:20Z warning \(text)")
        #expect(line.text(.terminal, at: time).wholeMatch(of: /\d\d:\d\d:20 warning .*/) != nil)
        #expect(line.text(.terminal, at: time).hasSuffix(text))
    }

    @Test func json() throws {
        let text = line.text(.json, at: time)
        #expect(text.hasPrefix(#"{"time":"2026-11-21T11:39:20.007Z","level":"warning","message":"HTTPDNS "#))
        let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: String])
        #expect(
            object == [
                "time": "2026-11-21T11:39:20.007Z", "level": "warning", "event": "service-fails",
                "message": "HTTPDNS 192.0.2.1:443 fails: \"no\" answer [2J", "server": "192.0.2.1:443",
                "nextServer": "192.0.2.2:443",
            ])
    }

    @Test func journal() {
        #expect(
            line.journalFields == [
                "MESSAGE=HTTPDNS 192.0.2.1:443 fails: \"no\" answer [2J", "PRIORITY=4", "SYSLOG_IDENTIFIER=httpdnsd",
                "MESSAGE_ID=1fc9829532b049748cd9641621c187ff", "HTTPDNSD_EVENT=service-fails",
                "HTTPDNSD_NEXT_SERVER=192.0.2.2:443", "HTTPDNSD_SERVER=192.0.2.1:443",
            ])
    }

    @Test func eachOccasionHasAnIdentifierOfItsOwn() {
        let all = LogEventID.allCases
        #expect(Set(all.map(\.messageID)).count == all.count)
        for event in all {
            #expect(event.messageID.wholeMatch(of: /[0-9a-f]{32}/) != nil)
            #expect(event.name.wholeMatch(of: /[a-z]+(-[a-z]+)*/) != nil)
        }
    }

    @Test func whichFormIsChosen() {
        func form(_ format: Settings.Log.Format, journal: Bool, socket: Bool, terminal: Bool) -> LogForm {
            LogForm(format, isJournal: journal, hasJournal: socket, isTerminal: terminal)
        }
        #expect(form(.auto, journal: true, socket: true, terminal: false) == .journal)
        #expect(form(.auto, journal: true, socket: false, terminal: false) == .prefixed)
        #expect(form(.auto, journal: false, socket: true, terminal: true) == .terminal)
        #expect(form(.auto, journal: false, socket: true, terminal: false) == .dated)
        #expect(form(.text, journal: true, socket: true, terminal: false) == .prefixed)
        #expect(form(.journal, journal: false, socket: true, terminal: true) == .journal)
        #expect(form(.journal, journal: false, socket: false, terminal: false) == .dated)
        #expect(form(.json, journal: true, socket: true, terminal: true) == .json)
    }
}
