/// The first error of the configuration: its origin, what is wrong and what would be right. It never contains a secret.
public struct ConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The configuration file, `environment` or `command line`.
    public let file: String
    /// Counted from 1; 0 without a file.
    public let line: Int
    /// `section.key`, the section alone, or the variable or option; `syntax` for a text that is not TOML.
    public let key: String
    public let message: String

    /// - Parameter key: As written; shortened if long, quoted if it has unusual characters.
    init(file: String, line: Int, key: String, message: String) {
        let isPlain = !key.isEmpty && key.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
        self.file = file
        self.line = line
        let shown = key.prefix(100) + (key.count > 100 ? "…" : "")
        self.key = isPlain ? String(shown) : quoted(shown)
        self.message = message
    }

    /// `FILE:LINE: KEY: what is wrong; what would be right`, on one line.
    public var description: String {
        line > 0 ? "\(file):\(line): \(key): \(message)" : "\(file): \(key): \(message)"
    }
}
