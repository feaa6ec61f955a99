internal import Glibc

/// Standard output or standard error. Unbuffered, so that no text is lost or reordered when the program ends.
package enum StandardStream {
    case output, error

    private var descriptor: Int32 { self == .output ? STDOUT_FILENO : STDERR_FILENO }

    package var isTerminal: Bool { isatty(descriptor) == 1 }

    /// The width of the terminal in letters; nil if the stream is no terminal, and its reader may want whole lines.
    /// COLUMNS, which the user can set, has priority over the terminal's size; the default is 80.
    package func columns(_ environment: [String: String]) -> Int? {
        guard isTerminal else { return nil }
        if let given = environment["COLUMNS"].flatMap({ Int($0) }), given > 0 { return max(given, Self.fewestColumns) }
        var size = winsize()
        let isKnown = unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        return isKnown ? max(Int(size.ws_col), Self.fewestColumns) : 80
    }

    /// With fewer letters the text would be unreadable.
    private static let fewestColumns = 20

    /// Whether text may be coloured: on a terminal that knows colours, unless NO_COLOR is set (no-color.org).
    package func isColoured(_ environment: [String: String]) -> Bool {
        isTerminal && environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
    }

    /// `DEVICE:INODE`, as systemd names the journal's stream (JOURNAL_STREAM, systemd.exec(5)); nil if it is closed.
    package var deviceAndInode: String? {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { return nil }
        return "\(status.st_dev):\(status.st_ino)"
    }

    /// Writes a line and its end, in one system call unless the system takes it in parts. Waits for a slow reader, even
    /// if another program has made the stream nonblocking.
    /// - Returns: false if the line cannot be written.
    @discardableResult
    package func write(_ line: String) -> Bool { write(Array((line + "\n").utf8)) }

    /// Writes any octets in the same way.
    @discardableResult
    package func write(_ bytes: [UInt8]) -> Bool {
        do throws(SystemError) { try writeAll(bytes) } catch { return false }
        return true
    }

    /// Writes any octets in the same way, and says why they cannot be written.
    package func writeAll(_ bytes: [UInt8]) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            let code = errno
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if code == EAGAIN {
                var stream = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&stream, 1, -1)
            } else if code != EINTR {
                throw SystemError("write", code: code)
            }
        }
    }
}
