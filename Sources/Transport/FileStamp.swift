internal import Glibc

/// By which it is known whether a file is still the one that was read. Made before it is read.
public struct FileStamp: Sendable {
    private let path: String
    private let marks: Marks?
    /// A further write so soon after the last one may leave no mark.
    private let isRecent: Bool

    /// What stat(2) says of a file; the times in nanoseconds since 1970.
    private struct Marks: Equatable {
        let device: UInt
        let number: UInt
        let length: Int
        let modified: Int
        let changed: Int

        func isOfSameContents(as other: Marks) -> Bool {
            (device, number, length, modified) == (other.device, other.number, other.length, other.modified)
        }
    }

    /// Longer than the steps in which time is counted, in nanoseconds: by a kernel, and by a file system of whole seconds.
    private static let (step, longStep) = (50_000_000, 2_000_000_000)

    public init(_ path: String) { self.init(path, at: WallClock.unixMicroseconds) }

    /// - Parameter time: Gives microseconds since 1970.
    init(_ path: String, at time: () -> UInt64) {
        self.path = path
        marks = Self.marks(of: path)
        let now = Int(time()) * 1000
        isRecent =
            marks.map { now - $0.changed < ($0.changed % 1_000_000_000 == 0 ? Self.longStep : Self.step) } ?? false
    }

    /// Whether the file is as it was, or is missing as it was. False in doubt.
    public var holds: Bool { !isRecent && Self.marks(of: path) == marks }

    /// What to do with a file that was read.
    public enum Look: Sendable {
        /// It is as it was.
        case keep
        case read
        /// It is other than it was, and may be half-written: it is to be looked at once more.
        case wait
    }

    /// For how long a file must not have changed until it counts as written, in nanoseconds.
    private static let quiet = 5_000_000_000

    /// What to do with a file of which it is not known whether a program has ended writing to it since it was read, or put it
    /// there.
    /// - Parameters:
    ///   - mayHaveMissed: The file was not watched: one that is another now was put in place.
    ///   - time: In microseconds since 1970.
    public func look(mayHaveMissed: Bool, at time: UInt64 = WallClock.unixMicroseconds()) -> Look {
        let now = Self.marks(of: path)
        guard now != marks else { return mayHaveMissed && isRecent ? .read : .keep }
        guard let now else { return .read }
        // Only who may read it has changed, or what it is called.
        if let marks, now.isOfSameContents(as: marks) || mayHaveMissed && now.number != marks.number { return .read }
        let age = Int(time) * 1000 - max(now.modified, now.changed)
        return (0..<Self.quiet).contains(age) ? .wait : .read
    }

    private static func marks(of path: String) -> Marks? {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        func nanoseconds(_ time: timespec) -> Int { time.tv_sec * 1_000_000_000 + time.tv_nsec }
        return Marks(
            device: UInt(status.st_dev), number: UInt(status.st_ino), length: Int(status.st_size),
            modified: nanoseconds(status.st_mtim), changed: nanoseconds(status.st_ctim))
    }
}
