import CSystemd
import Transport

/// systemd's journal.
public enum Journal {
    private static let socket = "/run/systemd/journal/socket"

    /// Whether it can be spoken to.
    static var isThere: Bool { SystemFile.isWritable(socket) }

    /// systemd names the journal's stream by device and inode; it is standard error's unless that was redirected.
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
