import CSystemd
import Transport

/// systemd's journal, spoken to in its native protocol.
public enum Journal {
    private static let socket = "/run/systemd/journal/socket"

    /// Whether the journal's socket is there and writable.
    static var isThere: Bool { SystemFile.isWritable(socket) }

    /// Whether standard error is connected to the journal: systemd names that stream by device and inode, which differ
    /// if it was redirected.
    public static var isStandardError: Bool {
        guard let stream = Environment.variables["JOURNAL_STREAM"] else { return false }
        return stream == StandardStream.error.deviceAndInode
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
