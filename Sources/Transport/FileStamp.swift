// Of the two, the module whose header the compiler reads first has `timespec`.
internal import CLinux
internal import Glibc

/// Detects whether a file has changed since it was read, and whether it is written to its end. A stamp is made before
/// the read.
///
/// Files that decide where names go are written by other programs meanwhile, also by many steps, each of which closes
/// the file. For a file of names, a hosts file and `resolv.conf`:
///
/// | the file | it is read | its former contents that it lacks |
/// | --- | --- | --- |
/// | was put in place (moved, linked), and not written since | at once | are given up |
/// | was closed after writing | at once | stay until the file rests for 5 s |
/// | has changed, and is still open | with the next reading of hosts or `resolv.conf`; else when it rests for 5 s | likewise |
/// | has changed at a start, a reload, or unwatched | then | likewise; at a start those of the copy of a file of names |
/// | is missing, unreadable, or without names or servers | at once | stay for 5 s; those of a file of names until it has names |
///
/// What hosts files and `resolv.conf` lack stays for a minute at most. `resolv.conf` lacks its former contents only if
/// it has no server at all. The configuration is read when an operator says so, in whatever state; at a reload, one that
/// is missing or has no section counts as half-written.
public struct FileStamp: Sendable {
    private let path: String
    private let marks: Marks?
    /// Whether the file was changed so recently that a further write may leave no mark.
    private let isRecent: Bool

    /// The marks of a file by stat(2); times in nanoseconds since 1970.
    private struct Marks: Equatable {
        let device: UInt
        let number: UInt
        let length: Int
        let modified: Int
        let changed: Int

        func isOfSameContents(as other: Marks) -> Bool {
            (device, number, length, modified) == (other.device, other.number, other.length, other.modified)
        }

        /// - Parameter time: The time in microseconds since 1970.
        func isYoung(at time: UInt64) -> Bool {
            (0..<FileStamp.quiet).contains(Int(time) * 1000 - max(modified, changed))
        }
    }

    /// Longer than the steps of file times, in nanoseconds: of kernels, and of file systems with whole seconds.
    private static let (step, longStep) = (50_000_000, 2_000_000_000)

    public init(_ path: String) { self.init(path, at: WallClock.unixMicroseconds) }

    /// - Parameter time: Returns the time in microseconds since 1970.
    init(_ path: String, at time: () -> UInt64) {
        self.path = path
        marks = Self.marks(of: path)
        let now = Int(time()) * 1000
        isRecent =
            marks.map { now - $0.changed < ($0.changed % 1_000_000_000 == 0 ? Self.longStep : Self.step) } ?? false
    }

    /// Whether the file is unchanged, or still missing; false in doubt.
    public var holds: Bool { !isRecent && Self.marks(of: path) == marks }

    /// The decision about a file that was read before.
    public enum Look: Sendable {
        /// The file is unchanged.
        case keep
        case read
        /// The file has changed, and may be half-written: check it again later.
        case wait
    }

    /// How long a file must be unchanged to count as written, in nanoseconds.
    private static let quiet = 5_000_000_000

    /// The decision about a file if it is unknown whether a program has finished writing it since the last read, or
    /// moved it there.
    /// - Parameters:
    ///   - mayHaveMissed: Whether the file was not watched, so that another number counts as a moved file.
    ///   - time: The time in microseconds since 1970.
    public func look(mayHaveMissed: Bool, at time: UInt64 = WallClock.unixMicroseconds()) -> Look {
        let now = Self.marks(of: path)
        guard now != marks else { return mayHaveMissed && isRecent ? .read : .keep }
        guard let now else { return .read }
        // Only its permissions or its name have changed.
        if let marks, now.isOfSameContents(as: marks) || mayHaveMissed && now.number != marks.number { return .read }
        return now.isYoung(at: time) ? .wait : .read
    }

    /// Whether a program may still be writing the file: it has changed some seconds ago at most, and not by being put in
    /// place.
    /// - Parameter placed: The stamp of the file when it was put in place, see ``FileWatch/placed``; nil: it was not.
    public func mayBeWritten(since placed: FileStamp?, at time: UInt64 = WallClock.unixMicroseconds()) -> Bool {
        guard let marks, marks.isYoung(at: time) else { return false }
        return placed?.marks.map { !$0.isOfSameContents(as: marks) } ?? true
    }

    private static func marks(of path: String) -> Marks? {
        guard let status = SystemFile.status(of: path) else { return nil }
        // A file may have any time. These limits, of 1906 and 2255, leave room for differences.
        func nanoseconds(_ time: timespec) -> Int {
            min(max(time.tv_sec, -2_000_000_000), 9_000_000_000) * 1_000_000_000 + time.tv_nsec
        }
        return Marks(
            device: UInt(status.st_dev), number: UInt(status.st_ino), length: Int(status.st_size),
            modified: nanoseconds(status.st_mtim), changed: nanoseconds(status.st_ctim))
    }
}
