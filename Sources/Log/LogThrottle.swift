import Logging

/// A line of the log: its text, and fields for programs that search the log.
struct LogLine: Sendable, Equatable {
    var level: Logger.Level
    var text: String
    var event: LogEventID
    /// Names in camelCase.
    var fields: [String: String] = [:]

    var metadata: Logger.Metadata {
        var metadata = fields.mapValues { Logger.MetadataValue.string($0) }
        metadata["event"] = .string(event.rawValue)
        return metadata
    }
}

/// Decides which lines are written at once and which are held back, so that a server that fails and answers in turns
/// does not fill the log.
///
/// Of each subject a few lines are written in ten minutes. Further ones are held until the ten minutes end; then the
/// last line of each kind is written with its count, in the order of their last occurrence, so that the last line in
/// the log shows the present state. Time in nanoseconds goes in, lines come out.
struct LogThrottle {
    private var subjects: [String: Subject] = [:]

    private struct Subject {
        let ends: UInt64
        var said = 0
        /// Ordered by their last occurrence, the latest last.
        var held: [Held] = []
    }

    private struct Held {
        var line: LogLine
        var count: Int
    }

    static let window: UInt64 = 600_000_000_000
    /// How many lines of one subject are written in one window before others are held.
    static let allowance = 6
    /// The most subjects that are tracked: servers, files and the like are few. Lines about further ones are always
    /// written.
    static let maximumSubjects = 512

    /// - Parameter subject: the thing that changes, for instance a server, which can fail in several ways and answer
    ///   again.
    /// - Returns: the lines to write now, in order.
    mutating func take(_ line: LogLine, about subject: String, at now: UInt64) -> [LogLine] {
        let ended = expire(at: now)
        if subjects[subject] == nil, subjects.count >= Self.maximumSubjects { return ended + [line] }
        var window = subjects[subject] ?? Subject(ends: now + Self.window)
        defer { subjects[subject] = window }
        guard window.said >= Self.allowance else {
            window.said += 1
            return ended + [window.said == Self.allowance ? line.beforeHolding : line]
        }
        var held = Held(line: line, count: 1)
        if let place = window.held.firstIndex(where: { $0.line.event == line.event }) {
            held.count += window.held.remove(at: place).count
        }
        window.held.append(held)
        return ended
    }

    /// The held lines of the windows that have ended.
    mutating func expire(at now: UInt64) -> [LogLine] {
        let ended = subjects.filter { $0.value.ends <= now }.sorted {
            ($0.value.ends, $0.key) < ($1.value.ends, $1.key)
        }
        for (subject, _) in ended { subjects.removeValue(forKey: subject) }
        return ended.flatMap { $0.value.held.map { $0.line.repeated($0.count) } }
    }

    /// When `expire` next has lines to give; nil while none are held.
    var nextDeadline: UInt64? {
        subjects.values.lazy.filter { !$0.held.isEmpty }.map(\.ends).min()
    }
}

extension LogLine {
    private static let minutes = LogThrottle.window / 60_000_000_000

    fileprivate var beforeHolding: LogLine {
        var line = self
        line.text += " (more of this is counted, and said every \(Self.minutes) min)"
        return line
    }

    fileprivate func repeated(_ count: Int) -> LogLine {
        var line = self
        line.text += " (\(count) more time\(count == 1 ? "" : "s") in \(Self.minutes) min)"
        line.fields["repeated"] = "\(count)"
        return line
    }
}
