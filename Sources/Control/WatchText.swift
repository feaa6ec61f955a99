import Base
package import Counters
import DNSWire
package import Transport

/// Writes what was answered as lines: for people in columns, for programs as JSON. Keys are added, never changed.
///
/// A hundred thousand lines in a second are written by a program that may share a core with the daemon. So what repeats
/// from line to line is made once and kept, and the rest is written octet by octet.
package struct WatchText {
    package enum Form: Sendable {
        case plain, coloured, json
    }

    private let form: Form
    private let zone: @Sendable (UInt64) -> TimeText
    private var widths = Widths()

    /// The time of the last line, in the unit that is shown, and its text.
    private var time: (number: UInt64, text: [UInt8])?
    private var clients = RecentTexts<Client>()
    private var outcomes = RecentTexts<Outcome>()
    private var durations = RecentTexts<Took>()

    /// - Parameter zone: gives the time of people; programs get UTC.
    package init(_ form: Form, zone: @escaping @Sendable (UInt64) -> TimeText = { TimeText(local: $0) }) {
        (self.form, self.zone) = (form, zone)
    }

    /// - Parameter octets: in which the frame is.
    package mutating func append(_ frame: WatchFrame, of octets: Span<UInt8>, to text: inout [UInt8]) {
        guard frame.kind != .dropped else { return text.append(form.dropped(frame.count)) }
        appendTime(frame.at, to: &text)
        let (client, outcome, took) = (Client(frame), Outcome(frame, octets), Took(nanoseconds: form.shown(frame.took)))
        text.append(contentsOf: clients[client] ?? make(client))
        appendName(octets.extracting(frame.name), to: &text)
        text.append(contentsOf: outcomes[outcome] ?? make(outcome))
        text.append(contentsOf: durations[took] ?? make(took))
    }

    // MARK: What differs from line to line

    private mutating func appendTime(_ microseconds: UInt64, to text: inout [UInt8]) {
        let (unit, digits) = form == .json ? (1, 6) : (1000, 3)
        let (number, second) = (microseconds / UInt64(unit), 1_000_000 / UInt64(unit))
        if number != time?.number {
            var words = time?.text ?? []
            if time.map({ $0.number / second }) != number / second { words = Array(begin(number / second).utf8) }
            // The digits stand at the end, before what may end a colour.
            var place = words.count - (form == .coloured ? Colour.end.utf8.count : 0)
            var rest = number % second
            for _ in 0..<digits {
                place -= 1
                words[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            }
            time = (number, words)
        }
        if let time { text.append(contentsOf: time.text) }
    }

    private func begin(_ second: UInt64) -> String {
        form == .json
            ? "{\"time\":\"\(TimeText(utc: second).dated).000000" : form.painted("\(zone(second).time).000", .dim)
    }

    /// - Parameter wire: empty: there is none.
    private mutating func appendName(_ wire: Span<UInt8>, to text: inout [UInt8]) {
        if form == .json { return Self.appendQuoted(wire, to: &text) }
        text.append("  ")
        let start = text.count
        if wire.isEmpty {
            text.append("-")
        } else {
            Name.append(wire, to: &text)
        }
        text.append(spaces: widths.name.missing(for: text.count - start))
    }

    private static func appendQuoted(_ wire: Span<UInt8>, to text: inout [UInt8]) {
        if wire.isEmpty { return text.append("null") }
        let start = text.count
        text.append("\"")
        if Name.append(wire, to: &text) { return text.append("\"") }
        let name = String(decoding: text[(start + 1)...], as: UTF8.self)
        text.removeLast(text.count - start)
        text.append(JSON.quoted(name))
    }

    // MARK: What repeats

    private mutating func make(_ client: Client) -> [UInt8] {
        let transport = client.isStream ? "tcp" : "udp"
        let text =
            form == .json
            ? "Z\",\"client\":\"\(client.address)\",\"transport\":\"\(transport)\",\"name\":"
            : column("\(client.address)", .none, \.client)
        clients[client] = Array(text.utf8)
        return Array(text.utf8)
    }

    private mutating func make(_ outcome: Outcome) -> [UInt8] {
        let (word, type) = (outcome.kind.word, outcome.hasName ? "\(outcome.type)" : nil)
        let text: String
        if form == .json {
            let by =
                word.map { "\"by\":\"\($0)\",\"group\":null,\"server\":null" }
                ?? "\"by\":\"server\",\"group\":\(JSON.quoted(outcome.group)),\"server\":\(JSON.quoted(outcome.server))"
            let quoted = type.map { "\"\($0)\"" } ?? "null"
            text = ",\"type\":\(quoted),\(by),\"rcode\":\"\(outcome.code)\",\"milliseconds\":"
        } else {
            text =
                column(type ?? "-", .none, \.type)
                + column(word ?? "\(outcome.group) \(outcome.server)", outcome.kind.colour, \.by)
                + column("\(outcome.code)", outcome.code.colour, \.code)
        }
        outcomes[outcome] = Array(text.utf8)
        return Array(text.utf8)
    }

    private mutating func make(_ took: Took) -> [UInt8] {
        let nanoseconds = took.nanoseconds
        let text: String
        if form == .json {
            let thousandths = "\(nanoseconds / 1000 % 1000)"
            text =
                "\(nanoseconds / 1_000_000).\(String(repeating: "0", count: 3 - thousandths.utf8.count))\(thousandths)}\n"
        } else {
            let words = Overview.milliseconds(nanoseconds: nanoseconds)
            let space = String(repeating: " ", count: max(0, 7 - words.unicodeScalars.count))
            text = "  \(space)\(form.painted(words, nanoseconds >= Self.slow ? .yellow : .none))\n"
        }
        durations[took] = Array(text.utf8)
        return Array(text.utf8)
    }

    /// Nanoseconds from which a person notices the wait: such lines are marked.
    private static let slow: UInt64 = 100_000_000

    /// What stands in one column, and the space before and behind it.
    private mutating func column(_ words: String, _ colour: Colour, _ place: WritableKeyPath<Widths, Widths.Width>)
        -> String
    {
        // With `?` in the place of what a terminal could take for a command, or could not show.
        let printable = String(
            decoding: words.utf8.map { (0x20..<0x7F).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
        let before = widths[keyPath: place].now
        let missing = widths[keyPath: place].missing(for: printable.utf8.count)
        if widths[keyPath: place].now != before {
            // What was made for narrower columns is made again.
            (clients, outcomes) = (RecentTexts(), RecentTexts())
        }
        return "  \(form.painted(printable, colour))\(String(repeating: " ", count: missing))"
    }
}

/// Columns are as wide as the widest text so far, within their bounds, so that lines stay below each other.
private struct Widths {
    struct Width {
        private(set) var now: Int
        let most: Int

        /// How many spaces are missing behind a text of so many letters.
        mutating func missing(for count: Int) -> Int {
            now = max(now, min(count, most))
            return max(0, now - count)
        }
    }

    var client = Width(now: 9, most: 39)
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

    static let end = "\u{1B}[0m"
}

extension WatchText.Form {
    fileprivate func painted(_ words: String, _ colour: Colour) -> String {
        self == .coloured && colour != .none ? "\u{1B}[\(colour.rawValue)m\(words)\(Colour.end)" : words
    }

    fileprivate func dropped(_ count: UInt64) -> String {
        if self == .json { return "{\"dropped\":\(count)}\n" }
        let noun = count == 1 ? "question is" : "questions are"
        return painted("… \(count) \(noun) not shown: they came faster than this was read", .yellow) + "\n"
    }

    /// Those nanoseconds of a time that can be seen.
    fileprivate func shown(_ took: UInt64) -> UInt64 {
        if self == .json { return took / 1000 * 1000 }
        return took < 100_000 ? (took + 500) / 1000 * 1000 : took
    }
}

extension WatchFrame.Kind {
    fileprivate var colour: Colour {
        switch self {
        case .cache, .hosts, .daemon: .dim
        case .stale, .dropped: .yellow
        case .nobody: .red
        case .server: .cyan
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

extension [UInt8] {
    fileprivate mutating func append(_ text: String) { append(contentsOf: text.utf8) }

    fileprivate mutating func append(spaces count: Int) {
        if count > 0 { append(contentsOf: repeatElement(UInt8(ascii: " "), count: count)) }
    }
}
