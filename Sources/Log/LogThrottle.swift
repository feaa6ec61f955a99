import Logging
import Synchronization
import Transport

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

/// Decides which lines are written, so that a server that fails and answers in turns does not fill the log.
///
/// Of each subject a few lines are written in ten minutes; further ones are counted, and the first line after that time
/// says how many they were. Time in nanoseconds goes in, lines come out.
struct LogThrottle {
    private var subjects: [String: Window] = [:]

    private struct Window {
        let ends: UInt64
        var written = 0
        /// Lines that were not written.
        var missing = 0
    }

    static let window: UInt64 = 600_000_000_000
    /// How many lines of one subject are written in one window.
    static let allowance = 6
    /// The most subjects that are tracked: servers, files and the like are few. Lines about further ones are always
    /// written.
    static let maximumSubjects = 512

    /// - Parameter subject: the thing that changes, for instance a server, which can fail in several ways and answer
    ///   again.
    /// - Returns: the line as it is to be written; nil: it was counted instead.
    mutating func take(_ line: LogLine, about subject: String, at now: UInt64) -> LogLine? {
        if subjects[subject] == nil, subjects.count >= Self.maximumSubjects {
            subjects = subjects.filter { now < $0.value.ends }
            if subjects.count >= Self.maximumSubjects { return line }
        }
        var line = line
        var window = subjects[subject] ?? Window(ends: now + Self.window)
        if window.ends <= now {
            line.say(missing: window.missing)
            window = Window(ends: now + Self.window)
        }
        defer { subjects[subject] = window }
        guard window.written < Self.allowance else {
            window.missing += 1
            return nil
        }
        window.written += 1
        if window.written == Self.allowance {
            line.text += " (for up to \(Self.window / 60_000_000_000) min more of this is only counted)"
        }
        return line
    }
}

extension LogLine {
    fileprivate mutating func say(missing count: Int) {
        guard count > 0 else { return }
        text += " (before, \(count) line\(count == 1 ? " of this was" : "s of this were") not written)"
        fields["repeated"] = "\(count)"
    }
}

/// A throttle that all threads share.
final class SharedThrottle: Sendable {
    private let throttle = Mutex(LogThrottle())

    /// Has a line written at once, or counts it. The lock is held meanwhile, so lines stand in the order in which they
    /// were decided on.
    func take(_ line: LogLine, about subject: String, _ write: (LogLine) -> Void) {
        throttle.withLock { throttle in
            if let line = throttle.take(line, about: subject, at: Clock.now()) { write(line) }
        }
    }
}
