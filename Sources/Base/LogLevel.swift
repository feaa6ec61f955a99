/// The importance of a log line; the raw value is the text of the key `log.level`.
public enum LogLevel: String, Sendable, CaseIterable {
    case error, warning, notice, info, debug

    /// The severity of syslog(3).
    package var severity: Int {
        switch self {
        case .error: 3
        case .warning: 4
        case .notice: 5
        case .info: 6
        case .debug: 7
        }
    }
}
