import CSystemd
import Transport

/// systemd's journal, by its native protocol.
public enum Journal {
    private static let socket = "/run/systemd/journal/socket"

    /// Whether the journal's socket exists and is writable.
    static var isThere: Bool { SystemFile.isWritable(socket) }

    /// Whether standard error is connected to the journal: systemd identifies that stream by device and inode, which
    /// differ if it was redirected.
    public static var isStandardError: Bool {
        guard let stream = Environment.variables["JOURNAL_STREAM"] else { return false }
        return stream == StandardStream.error.deviceAndInode
    }

    /// Sends one entry; each field is `NAME=value`.
    /// - Returns: False if the entry could not be sent.
    static func send(_ fields: [String]) -> Bool {
        let bytes = Array(fields.joined().utf8)
        let lengths = fields.map(\.utf8.count)
        // Sound: the lengths are those of the fields that the bytes consist of.
        return unsafe csystemd_journal_send(bytes, lengths, lengths.count) >= 0
    }
}
