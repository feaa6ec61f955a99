/// Decides which lines are written, so that a server that alternately fails and answers does not fill the log.
///
/// A few lines about each subject are written in ten minutes. Further lines are counted, and the first line after that
/// time contains their number. Time in nanoseconds goes in, decisions come out.
struct LogThrottle {
    private var subjects: [String: Window] = [:]

    private struct Window {
        let ends: UInt64
        var written = 0
        /// Lines that were not written.
        var missing = 0
    }

    /// The addition to a written line.
    struct Note: Equatable {
        /// Lines of the subject that were not written before this line.
        var missing = 0
        /// Whether lines after this line are only counted.
        var isLast = false

        var text: String {
            let before = " (before, \(missing) line\(missing == 1 ? " of this was" : "s of this were") not written)"
            let after = " (for up to \(LogThrottle.window / 60_000_000_000) min more of this is only counted)"
            return (missing > 0 ? before : "") + (isLast ? after : "")
        }
    }

    static let window: UInt64 = 600_000_000_000
    /// The most lines of one subject in one window.
    static let allowance = 6
    /// The most subjects that are tracked: servers, files and the like are few. Lines about further subjects are always
    /// written.
    static let maximumSubjects = 512

    /// - Parameter subject: The thing that changes, such as a server, which can fail in several ways and answer again.
    /// - Returns: Nil if the line is only counted, and not written.
    mutating func take(about subject: String, at now: UInt64) -> Note? {
        if subjects[subject] == nil, subjects.count >= Self.maximumSubjects {
            subjects = subjects.filter { now < $0.value.ends }
            if subjects.count >= Self.maximumSubjects { return Note() }
        }
        var window = subjects[subject] ?? Window(ends: now + Self.window)
        var note = Note()
        if window.ends <= now {
            note.missing = window.missing
            window = Window(ends: now + Self.window)
        }
        defer { subjects[subject] = window }
        guard window.written < Self.allowance else {
            window.missing += 1
            return nil
        }
        window.written += 1
        note.isLast = window.written == Self.allowance
        return note
    }
}
