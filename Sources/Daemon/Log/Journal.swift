import CSystemd
import Glibc

/// systemd's journal.
public enum Journal {
    private static let socket = "/run/systemd/journal/socket"

    /// Whether it can be spoken to.
    static var isThere: Bool { unsafe access(socket, W_OK) == 0 }

    /// systemd names the journal's stream by device and inode; it is standard error's unless that was redirected.
    public static var isStandardError: Bool {
        guard let value = unsafe getenv("JOURNAL_STREAM") else { return false }
        let parts = unsafe String(cString: value).split(separator: ":")
        var status = stat()
        guard parts.count == 2, unsafe fstat(STDERR_FILENO, &status) == 0 else { return false }
        return parts[0] == "\(status.st_dev)" && parts[1] == "\(status.st_ino)"
    }

    /// Sends one entry; each field is `NAME=value`.
    /// - Returns: false if it could not be sent.
    static func send(_ fields: [String]) -> Bool {
        let bytes = Array(fields.joined().utf8)
        let lengths = fields.map(\.utf8.count)
        // Sound: the lengths are those of the fields that the bytes are made of.
        return unsafe csystemd_journal_send(bytes, lengths, lengths.count) >= 0
    }
}
