package import Base
import Transport

/// One line of the log in each of its forms.
package struct LogText: Sendable {
    package let level: LogLevel
    package let text: String
    package let fields: [(name: String, value: String)]

    init(level: LogLevel, text: String, fields: [(name: String, value: String)] = []) {
        self.level = level
        // A newline inside would forge a second line; other control characters could control a terminal.
        self.text = text.plain()
        self.fields = fields
    }

    /// The line without the newline. In the form `journal`, whose fields are ``journalFields``, the line is the same as
    /// in the form `prefixed`.
    /// - Parameter time: Milliseconds since 1970.
    func text(_ form: LogForm, at time: UInt64) -> String {
        switch form {
        case .journal, .prefixed: "<\(level.severity)>\(text)"
        case .terminal: "\(TimeText(local: time / 1000).time) \(level.rawValue) \(text)"
        case .dated: "\(TimeText(utc: time / 1000).dated)Z \(level.rawValue) \(text)"
        case .json: json(at: time)
        }
    }

    /// A JSON object (RFC 8259): first `time`, `level` and `message`, then the event and its fields.
    private func json(at time: UInt64) -> String {
        let milliseconds = String(1000 + time % 1000).dropFirst()
        var pairs = [
            ("time", "\(TimeText(utc: time / 1000).dated).\(milliseconds)Z"), ("level", level.rawValue),
            ("message", text),
        ]
        pairs += fields.filter { $0.name == "event" } + fields.filter { $0.name != "event" }
        let members = pairs.map { "\(JSON.quoted($0.0)):\(JSON.quoted($0.1))" }
        return "{\(members.joined(separator: ","))}"
    }

    /// The fields as `NAME=value` (systemd.journal-fields(7)): the standard fields, an event's identifier, and the
    /// line's own fields with a prefix.
    var journalFields: [String] {
        var journal = ["MESSAGE=\(text)", "PRIORITY=\(level.severity)", "SYSLOG_IDENTIFIER=httpdnsd"]
        for field in fields {
            if field.name == "event", let event = LogEventID.allCases.first(where: { $0.name == field.value }) {
                journal.append("MESSAGE_ID=\(event.messageID)")
            }
            let name = field.name.reduce(into: "") { $0 += $1.isUppercase ? "_\($1)" : $1.uppercased() }
            journal.append("HTTPDNSD_\(name)=\(field.value)")
        }
        return journal
    }
}
