import Logging

/// A line of the log: its words, and beside them what a program may look for.
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

/// Which lines are said, and which are counted because they say again and again how the same subject changes: a server
/// that answers and fails in turns must not fill the log.
///
/// Of each subject a few lines are said in ten minutes. What comes beyond is held, and told at their end: the last line
/// of each kind and how often it came, in the order they came last, so that the log's last word is how things stand.
/// Time in nanoseconds goes in, lines come out.
struct LogThrottle {
    private var subjects: [String: Subject] = [:]

    private struct Subject {
        let ends: UInt64
        var said = 0
        /// The one that came last stands last.
        var held: [Held] = []
    }

    private struct Held {
        var line: LogLine
        var count: Int
    }

    static let window: UInt64 = 600_000_000_000
    /// Lines of one subject in one window, before those that are held.
    static let allowance = 6
    /// Subjects are servers, files and the like: few. Beyond, lines are said as they come.
    static let maximumSubjects = 512

    /// - Parameter subject: what changes; a server, for instance, which can fail in several ways and answer again.
    /// - Returns: what to say now, in order.
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

    /// What the windows that have ended held.
    mutating func expire(at now: UInt64) -> [LogLine] {
        let ended = subjects.filter { $0.value.ends <= now }.sorted {
            ($0.value.ends, $0.key) < ($1.value.ends, $1.key)
        }
        for (subject, _) in ended { subjects.removeValue(forKey: subject) }
        return ended.flatMap { $0.value.held.map { $0.line.repeated($0.count) } }
    }

    /// When `expire` has something to say; nil while nothing is held.
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
