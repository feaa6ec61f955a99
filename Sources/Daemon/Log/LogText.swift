import Base
import Glibc
import Logging

/// One line of the log in each of its forms.
struct LogText {
    let level: Logger.Level
    let text: String
    let fields: [(name: String, value: String)]

    init(level: Logger.Level, text: String, fields: [(name: String, value: String)] = []) {
        self.level = level
        // A newline inside would forge a second line; other control characters could talk to a terminal.
        self.text = String(String.UnicodeScalarView(text.unicodeScalars.map { Self.isControl($0) ? " " : $0 }))
        self.fields = fields
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
    }

    /// Without the newline. The journal's own form is ``journalFields``; as text it is that of a stream it reads.
    func text(_ form: LogForm, at time: timespec) -> String {
        switch form {
        case .journal, .prefixed: "<\(level.priority)>\(text)"
        case .terminal: "\(TimeText(local: time).time) \(level) \(text)"
        case .dated: "\(TimeText(utc: time).dated)Z \(level) \(text)"
        case .json: json(at: time)
        }
    }

    /// RFC 8259; `time`, `level` and `message` come first, then the event and its fields.
    private func json(at time: timespec) -> String {
        let milliseconds = String(1000 + time.tv_nsec / 1_000_000).dropFirst()
        var pairs = [
            ("time", "\(TimeText(utc: time).dated).\(milliseconds)Z"), ("level", "\(level)"), ("message", text),
        ]
        pairs += fields.filter { $0.name == "event" } + fields.filter { $0.name != "event" }
        let members = pairs.map { "\(JSON.quoted($0.0)):\(JSON.quoted($0.1))" }
        return "{\(members.joined(separator: ","))}"
    }

    /// `NAME=value`, systemd.journal-fields(7): an event's identifier, and our own fields under our own prefix.
    var journalFields: [String] {
        var journal = ["MESSAGE=\(text)", "PRIORITY=\(level.priority)", "SYSLOG_IDENTIFIER=httpdnsd"]
        for field in fields {
            if field.name == "event", let occasion = Occasion(rawValue: field.value) {
                journal.append("MESSAGE_ID=\(occasion.messageID)")
            }
            let name = field.name.reduce(into: "") { $0 += $1.isUppercase ? "_\($1)" : $1.uppercased() }
            journal.append("HTTPDNSD_\(name)=\(field.value)")
        }
        return journal
    }
}

/// A moment's date and time as people write them.
private struct TimeText {
    /// `HH:MM:SS`
    let time: String
    /// `YYYY-MM-DDTHH:MM:SS` (RFC 3339, without the zone)
    let dated: String

    init(utc moment: timespec) { unsafe self.init(moment) { unsafe gmtime_r($0, $1) } }
    init(local moment: timespec) { unsafe self.init(moment) { unsafe localtime_r($0, $1) } }

    private init(
        _ moment: timespec, _ split: (UnsafePointer<time_t>, UnsafeMutablePointer<tm>) -> UnsafeMutablePointer<tm>?
    ) {
        var seconds = moment.tv_sec
        // Numbers only: the pointer in it, the zone's name, is not looked at.
        var parts = unsafe tm()
        _ = unsafe split(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        time = unsafe "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
        dated = unsafe "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))T\(time)"
    }
}

extension Logger.Level {
    /// syslog(3) severity.
    var priority: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}
