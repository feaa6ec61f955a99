import Base
package import Counters
import DNSWire
package import Transport

/// Formats answered questions as lines: for people in columns, for programs as JSON. Keys are added, never changed.
package struct WatchText {
    /// The readers of the lines. The form's name is a parameter of the request.
    package enum Form: String, Sendable {
        case plain, coloured, json
    }

    private let form: Form
    private let zone: @Sendable (UInt64) -> TimeText
    private var widths = Widths()

    /// - Parameter zone: Returns the local time for people; programs get UTC.
    package init(_ form: Form, zone: @escaping @Sendable (UInt64) -> TimeText = { TimeText(local: $0) }) {
        (self.form, self.zone) = (form, zone)
    }

    /// The line of a question, with its end.
    package mutating func line(_ question: Watched) -> String {
        var octets: [UInt8] = []
        if !question.name.isEmpty { Name.append(question.name.span, to: &octets) }
        let name = octets.isEmpty ? nil : String(decoding: octets, as: UTF8.self)
        return form == .json ? Self.json(question, name) : columns(question, name)
    }

    /// The line with the number of questions for which there is no line.
    package func dropped(_ count: UInt64) -> String {
        if form == .json { return JSON.object([("dropped", .integer(count))]).text + "\n" }
        let noun = count == 1 ? "question is" : "questions are"
        return painted("… \(count) \(noun) not shown: they came faster than this was read", .yellow) + "\n"
    }

    private static func json(_ question: Watched, _ name: String?) -> String {
        let microseconds = String(1_000_000 + question.at % 1_000_000).dropFirst()
        let (by, group, server): (String, String?, String?) =
            switch question.by {
            case .server(let group, let server): ("server", group, server)
            case .group(let group): ("group", group, nil)
            case .cache, .stale, .hosts, .daemon, .noServer: (question.by.word, nil, nil)
            }
        let line: JSON = [
            "time": "\(TimeText(utc: question.at / 1_000_000).dated).\(microseconds)Z",
            "client": "\(question.client)", "transport": question.transport.rawValue,
            "name": name, "type": name.map { _ in "\(question.type)" },
            "by": by, "group": group, "server": server,
            "way": question.way.word, "rcode": "\(question.code)",
            "reason": question.reason.isEmpty ? nil : question.reason,
            "milliseconds": Double(question.took / 1000) / 1000,
        ]
        return line.text + "\n"
    }

    private mutating func columns(_ question: Watched, _ name: String?) -> String {
        let milliseconds = String(1000 + question.at / 1000 % 1000).dropFirst()
        var by = question.by.word
        if case .server(_, let server) = question.by { by += " \(server)" }
        let took = Overview.milliseconds(nanoseconds: question.took)
        let space = String(repeating: " ", count: max(0, 7 - took.unicodeScalars.count))
        return painted("\(zone(question.at / 1_000_000).time).\(milliseconds)", .dim)
            + column("\(question.client)", .none, \.client)
            + column(question.transport.rawValue, .none, \.transport)
            + column(name ?? "-", .none, \.name)
            + column(name == nil ? "-" : "\(question.type)", .none, \.type)
            + column(by, question.by.colour, \.by)
            + column("\(question.code)", question.code.colour, \.code)
            + "  \(space)\(painted(took, question.took >= Self.slow ? .yellow : .none))"
            + (question.reason.isEmpty ? "\n" : "  \(painted(Self.printable(question.reason), .dim))\n")
    }

    /// Nanoseconds from which a person notices the wait. Lines of such questions are marked.
    private static let slow: UInt64 = 100_000_000

    /// The text of one column, and the space before and after it.
    private mutating func column(_ words: String, _ colour: Colour, _ width: WritableKeyPath<Widths, Widths.Width>)
        -> String
    {
        let printable = Self.printable(words)
        let missing = widths[keyPath: width].missing(for: printable.utf8.count)
        return "  \(painted(printable, colour))\(String(repeating: " ", count: missing))"
    }

    /// Replaces octets by `?` that a terminal could take for a command, or could not show.
    private static func printable(_ words: String) -> String {
        String(decoding: words.utf8.map { (0x20..<0x7F).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }

    private func painted(_ words: String, _ colour: Colour) -> String {
        form == .coloured && colour != .none ? "\u{1B}[\(colour.rawValue)m\(words)\u{1B}[0m" : words
    }
}

/// Columns are as wide as the widest text so far, within their bounds, so that lines stay aligned.
private struct Widths {
    struct Width {
        private(set) var now: Int
        let most: Int

        /// The number of spaces to add to a text of so many letters.
        mutating func missing(for count: Int) -> Int {
            now = max(now, min(count, most))
            return max(0, now - count)
        }
    }

    var client = Width(now: 9, most: 39)
    var transport = Width(now: 3, most: 5)
    var name = Width(now: 24, most: 48)
    var type = Width(now: 5, most: 10)
    var by = Width(now: 5, most: 40)
    var code = Width(now: 8, most: 8)
}

// MARK: Colours

/// By the numbers of ECMA-48 §8.3.117.
private enum Colour: String {
    case none = ""
    case dim = "2"
    case red = "31"
    case green = "32"
    case yellow = "33"
    case cyan = "36"
}

extension Watched.By {
    fileprivate var colour: Colour {
        switch self {
        case .cache, .hosts, .daemon: .dim
        case .stale: .yellow
        case .noServer: .red
        case .server, .group: .cyan
        }
    }
}

extension ResponseCode {
    fileprivate var colour: Colour {
        switch self {
        case .noError: .green
        case .nxDomain: .yellow
        default: .red
        }
    }
}
