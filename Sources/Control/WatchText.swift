import Base
package import Counters
import DNSWire
package import Transport

/// Writes what was answered as lines: for people in columns, for programs as JSON. Keys are added, never changed.
package struct WatchText {
    package enum Form: Sendable {
        case plain, coloured, json
    }

    private let form: Form
    /// Columns are as wide as the widest text so far, within their bounds, so that lines stay below each other.
    private var widths = (client: 9, name: 24, type: 5, by: 5)
    private static let bounds = (client: 39, name: 48, type: 10, by: 40)
    /// The time of the last line: many have the same second.
    private var second: (number: UInt64, text: TimeText)?
    private let zone: @Sendable (UInt64) -> TimeText

    /// - Parameter zone: gives the time of people; programs get UTC.
    package init(_ form: Form, zone: @escaping @Sendable (UInt64) -> TimeText = { TimeText(local: $0) }) {
        (self.form, self.zone) = (form, zone)
    }

    package mutating func append(_ frame: WatchFrame, to text: inout [UInt8]) {
        switch (frame, form) {
        case (.answered(let watched), .json): appendJSON(watched, to: &text)
        case (.answered(let watched), _): appendLine(watched, to: &text)
        case (.dropped(let count), .json): text.append("{\"dropped\":\(count)}\n")
        case (.dropped(let count), _):
            let noun = count == 1 ? "question is" : "questions are"
            text.append(paint("… \(count) \(noun) not shown: they came faster than this was read", .yellow) + "\n")
        }
    }

    private mutating func time(_ microseconds: UInt64) -> TimeText {
        let number = microseconds / 1_000_000
        if let second, second.number == number { return second.text }
        let text = form == .json ? TimeText(utc: number) : zone(number)
        second = (number, text)
        return text
    }

    // MARK: For programs

    private mutating func appendJSON(_ watched: Watched, to text: inout [UInt8]) {
        text.append("{\"time\":\"\(time(watched.at).dated).")
        Self.append(watched.at % 1_000_000, digits: 6, to: &text)
        text.append("Z\",\"client\":\"\(watched.client)\",\"transport\":\"\(watched.isStream ? "tcp" : "udp")\"")
        if let name = watched.name {
            text.append(",\"name\":")
            text.append(JSON.quoted("\(name)"))
            text.append(",\"type\":\"\(watched.type)\"")
        } else {
            text.append(",\"name\":null,\"type\":null")
        }
        if case .server(let group, let server) = watched.by {
            text.append(",\"by\":\"server\",\"group\":\(JSON.quoted(group)),\"server\":\(JSON.quoted(server))")
        } else {
            text.append(",\"by\":\"\(watched.by.word)\",\"group\":null,\"server\":null")
        }
        text.append(",\"rcode\":\"\(watched.code)\",\"milliseconds\":")
        Self.append(watched.took / 1_000_000, digits: 1, to: &text)
        text.append(".")
        Self.append(watched.took / 1000 % 1000, digits: 3, to: &text)
        text.append("}\n")
    }

    // MARK: For people

    private mutating func appendLine(_ watched: Watched, to text: inout [UInt8]) {
        let thousandths = "\(watched.at / 1000 % 1000)"
        text.append(
            paint(
                "\(time(watched.at).time).\(String(repeating: "0", count: 3 - thousandths.utf8.count))\(thousandths)",
                .dim))
        column("\(watched.client)", &widths.client, Self.bounds.client, to: &text)
        column(watched.name.map { "\($0)" } ?? "-", &widths.name, Self.bounds.name, to: &text)
        column(watched.name == nil ? "-" : "\(watched.type)", &widths.type, Self.bounds.type, to: &text)
        column(watched.whoText, &widths.by, Self.bounds.by, watched.by.colour, to: &text)
        var code = 8
        column("\(watched.code)", &code, code, watched.code.colour, to: &text)
        let took = Overview.milliseconds(nanoseconds: watched.took)
        text.append("  ")
        Self.pad(7 - took.unicodeScalars.count, to: &text)
        text.append(paint(took, watched.took >= Self.slow ? .yellow : .none))
        text.append("\n")
    }

    /// Nanoseconds from which a person notices the wait: such lines are marked.
    private static let slow: UInt64 = 100_000_000

    private func column(
        _ words: String, _ width: inout Int, _ bound: Int, _ colour: Colour = .none, to text: inout [UInt8]
    ) {
        let words = words.printable
        width = max(width, min(words.utf8.count, bound))
        text.append("  ")
        text.append(paint(words, colour))
        Self.pad(width - words.utf8.count, to: &text)
    }

    private static func pad(_ count: Int, to text: inout [UInt8]) {
        if count > 0 { text.append(contentsOf: repeatElement(UInt8(ascii: " "), count: count)) }
    }

    private static func append(_ number: UInt64, digits: Int, to text: inout [UInt8]) {
        let words = "\(number)"
        for _ in 0..<max(0, digits - words.utf8.count) { text.append(UInt8(ascii: "0")) }
        text.append(words)
    }

    /// By the numbers of ECMA-48 §8.3.117.
    enum Colour: String {
        case none = ""
        case dim = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
        case cyan = "36"
    }

    private func paint(_ words: String, _ colour: Colour) -> String {
        form == .coloured && colour != .none ? "\u{1B}[\(colour.rawValue)m\(words)\u{1B}[0m" : words
    }
}

extension Watched {
    fileprivate var whoText: String {
        if case .server(let group, let server) = by { "\(group) \(server)" } else { by.word }
    }
}

extension Watched.By {
    fileprivate var colour: WatchText.Colour {
        switch self {
        case .cache, .hosts, .daemon: .dim
        case .stale: .yellow
        case .nobody: .red
        case .server: .cyan
        }
    }
}

extension ResponseCode {
    fileprivate var colour: WatchText.Colour {
        switch self {
        case .noError: .green
        case .nxDomain: .yellow
        default: .red
        }
    }
}

extension String {
    /// With `?` in the place of what a terminal could take for a command, or could not show.
    fileprivate var printable: String {
        utf8.allSatisfy { (0x20..<0x7F).contains($0) }
            ? self : String(decoding: utf8.map { (0x20..<0x7F).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ text: String) { append(contentsOf: text.utf8) }
}
