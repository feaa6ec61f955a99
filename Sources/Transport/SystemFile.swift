internal import Glibc

/// Reads whole small files.
public enum SystemFile {
    /// Whether this process may write to the file at this path, by access(2).
    package static func isWritable(_ path: String) -> Bool { unsafe access(path, W_OK) == 0 }

    /// Whether this process may reach the files in the folder at this path, by access(2).
    static func isSearchable(_ path: String) -> Bool { unsafe access(path, X_OK) == 0 }

    /// Whether the path exists.
    public static func isThere(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

    /// The permission bits of a file that each user of this machine can read: it is readable by all, and each folder on
    /// the way can be entered by all. Nil if not each user can.
    public static func modeOpenToAll(_ path: String) -> UInt32? {
        guard let mode = status(of: path)?.st_mode, mode & S_IROTH != 0 else { return nil }
        guard folders(of: path).allSatisfy({ status(of: $0).map { $0.st_mode & S_IXOTH != 0 } ?? false })
        else { return nil }
        return mode & 0o7777
    }

    /// Whether a user who is only in one group can read a regular file, by its permission bits and the bits of the
    /// folders on the way to it. Nil if there is no such user or group on this machine, or no such file.
    public static func isReadable(_ path: String, by user: String, in group: String) -> Bool? {
        // Sound: the entries are copied from before another call; no other thread of a command makes one.
        guard let owner = unsafe getpwnam(user)?.pointee.pw_uid, let members = unsafe getgrnam(group)?.pointee.gr_gid,
            let file = status(of: path), file.st_mode & S_IFMT == S_IFREG
        else { return nil }
        func may(_ status: stat, _ right: mode_t) -> Bool {
            let shift: mode_t = status.st_uid == owner ? 6 : status.st_gid == members ? 3 : 0
            return status.st_mode >> shift & right == right
        }
        return may(file, 4) && folders(of: path).allSatisfy { status(of: $0).map { may($0, 1) } ?? false }
    }

    /// The folders on the way to a file, the folder that contains it last; empty if it is in the present folder.
    static func folders(of path: String) -> [String] {
        path.indices.filter { path[$0] == "/" }.map { $0 == path.startIndex ? "/" : String(path[..<$0]) }
    }

    /// The file's status; nil if there is no file, or it cannot be examined.
    static func status(of path: String) -> stat? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? status : nil
    }

    /// The status of a link itself.
    static func status(ofLink path: String) -> stat? {
        var status = stat()
        return unsafe lstat(path, &status) == 0 ? status : nil
    }

    /// Whether two statuses are of one file.
    static func isSame(_ one: stat, _ other: stat) -> Bool {
        (one.st_dev, one.st_ino, one.st_mode & S_IFMT) == (other.st_dev, other.st_ino, other.st_mode & S_IFMT)
    }

    /// Reads a file to its end. The call waits for no program, since the caller's thread may be one that all other work
    /// waits for.
    ///
    /// - Parameters:
    ///   - limit: The most bytes that the file may have.
    ///   - waits: Whether to wait for the writer of a pipe, as of a shell's `<(…)`. If not, a pipe is refused.
    /// - Throws: The system's error; EFBIG if there is more than `limit`, EINVAL for a pipe, ENXIO for a pipe without a
    ///   writer.
    public static func read(_ path: String, limit: Int, waits: Bool = false) throws(SystemError) -> [UInt8] {
        // Nonblocking: opening a pipe would wait for its writer.
        let flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK
        let file = try Descriptor.made(by: "open", path) { unsafe open(path, flags) }
        var status = stat()
        try SystemCall.require("fstat", path) { unsafe fstat(file.raw, &status) }
        let isPipe = status.st_mode & S_IFMT == S_IFIFO
        guard waits || !isPipe else { throw SystemError("open", path, code: EINVAL) }
        var bytes: [UInt8] = []
        // A file is read at once; a pipe, or a file of /proc, by pages.
        var chunk = [UInt8](repeating: 0, count: min(65_536, limit + 1, max(4096, Int(status.st_size) + 1)))
        while true {
            // Sound: the kernel writes at most `count` bytes.
            let outcome = unsafe chunk.withUnsafeMutableBufferPointer { room in
                SystemCall.attempt { unsafe Glibc.read(file.raw, room.baseAddress, room.count) }
            }
            switch outcome {
            case .done(0):
                if isPipe, bytes.isEmpty, events(of: file, within: 0) == 0 {
                    throw SystemError("open", path, code: ENXIO)
                }
                return bytes
            case .done(let count):
                guard bytes.count + count <= limit else { throw SystemError("read", path, code: EFBIG) }
                bytes.append(contentsOf: chunk[..<count])
            case .wouldBlock:
                guard isPipe else { throw SystemError("read", path, code: EAGAIN) }
                _ = events(of: file, within: -1)
            case .failed(let code): throw SystemError("read", path, code: code)
            }
        }
    }

    /// The events of poll(2) for a file to read; none for a pipe that no program has opened for writing yet.
    /// - Parameter milliseconds: The longest wait; −1: until there is an event.
    private static func events(of file: borrowing Descriptor, within milliseconds: Int32) -> Int16 {
        var asked = pollfd(fd: file.raw, events: Int16(POLLIN), revents: 0)
        _ = SystemCall.attempt { Int(unsafe poll(&asked, 1, milliseconds)) }
        return asked.revents
    }

    /// The target of a link, as written.
    static func target(ofLink path: String) throws(SystemError) -> String {
        var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
        // Sound: the kernel writes at most `count` octets.
        let length = unsafe target.withUnsafeMutableBytes { room in
            unsafe readlink(path, room.baseAddress!.assumingMemoryBound(to: CChar.self), room.count)
        }
        guard length >= 0 else { throw SystemError("readlink", path, code: errno) }
        return String(decoding: target[..<length], as: UTF8.self)
    }
}
