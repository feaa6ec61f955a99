import Glibc
public import Logging

/// Writes log lines to standard error, one system call each.
///
/// Under systemd a line begins with its priority (sd-daemon(3)) and has no time stamp, since the journal has its own;
/// elsewhere it begins with the time in UTC.
public struct StandardErrorLog: LogHandler {
    private let threshold: LogThreshold
    public var logLevel: Logger.Level {
        get { threshold.level }
        set { threshold.level = newValue }
    }
    public var metadata: Logger.Metadata = [:]
    private let isJournal: Bool

    public init(_ threshold: LogThreshold, isJournal: Bool = StandardErrorLog.standardErrorIsJournal) {
        self.threshold = threshold
        self.isJournal = isJournal
    }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        var line = isJournal ? "<\(event.level.priority)>" : "\(Self.timestamp()) \(event.level.word) "
        line += event.message.description
        line += "\n"
        var bytes = Array(line.utf8)
        // A newline inside would forge a second line.
        for at in bytes.indices.dropLast() where bytes[at] < 0x20 || bytes[at] == 0x7F { bytes[at] = UInt8(ascii: " ") }
        // Nothing can be done about a log that cannot be written.
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    /// systemd names the journal's socket by device and inode; it is standard error's unless that was redirected.
    public static var standardErrorIsJournal: Bool {
        guard let value = unsafe getenv("JOURNAL_STREAM") else { return false }
        let parts = unsafe String(cString: value).split(separator: ":")
        var status = stat()
        guard parts.count == 2, unsafe fstat(STDERR_FILENO, &status) == 0 else { return false }
        return parts[0] == "\(status.st_dev)" && parts[1] == "\(status.st_ino)"
    }

    private static func timestamp() -> String {
        var now = time(nil)
        // Numbers only: the pointer in it, the zone's name, is not looked at.
        var parts = unsafe tm()
        _ = unsafe gmtime_r(&now, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let day = unsafe "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        return unsafe day + "T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))Z"
    }
}

extension Logger.Level {
    /// syslog(3) severity.
    fileprivate var priority: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }

    fileprivate var word: String { "\(self)" }
}
