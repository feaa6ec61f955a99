internal import Glibc

/// The file, folder or link at a path; links are not followed.
public enum FileState: Sendable, Equatable {
    case absent
    case folder
    /// - Parameter String: The link's target, as written.
    case link(String)
    /// - Parameters: The file's octets, permission bits, owner and group.
    case file([UInt8], mode: UInt32, owner: UInt32, group: UInt32)

    /// Ends the name of a file or link that is about to replace another.
    private static let suffix = ".httpdnsd-new"
    /// The longest file, in octets.
    private static let limit = 1 << 20

    /// A file of this process's user with this text.
    public static func text(_ text: String, mode: UInt32 = 0o644) -> FileState {
        .file(Array(text.utf8), mode: mode)
    }

    /// A file of this process's user with these octets.
    public static func file(_ octets: [UInt8], mode: UInt32) -> FileState {
        .file(octets, mode: mode, owner: geteuid(), group: getegid())
    }

    /// - Throws: The system's error; EINVAL for a socket, a device and the like.
    public init(at path: String) throws(SystemError) {
        var status = stat()
        do throws(SystemError) {
            try SystemCall.require("lstat", path) { unsafe lstat(path, &status) }
        } catch {
            guard error.isNotFound else { throw error }
            self = .absent
            return
        }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: self = .folder
        case S_IFLNK: self = .link(try SystemFile.target(ofLink: path))
        case S_IFREG:
            self = .file(
                try SystemFile.read(path, limit: Self.limit), mode: status.st_mode & 0o7777, owner: status.st_uid,
                group: status.st_gid)
        default: throw SystemError("read", path, code: EINVAL)
        }
    }

    /// Puts this state at the path, in one step: a reader sees either the former state or this state, whole. A folder
    /// that is to be absent stays if it is not empty, or a file system is mounted there.
    public func put(at path: String) throws(SystemError) {
        let new = path + Self.suffix
        try Self.remove(new)
        guard try FileState(at: path) != self else { return }
        switch self {
        case .absent: try Self.remove(path)
        case .folder:
            try SystemCall.require("mkdir", path) { unsafe mkdir(path, 0o755) }
            // The umask has taken bits away.
            try SystemCall.require("chmod", path) { unsafe chmod(path, 0o755) }
        case .link(let target):
            try SystemCall.require("symlink", new) { unsafe symlink(target, new) }
            try SystemCall.require("rename", path) { unsafe rename(new, path) }
        case .file(let octets, let mode, let owner, let group):
            try Self.write(octets, new, mode: mode, owner: owner, group: group)
            try SystemCall.require("rename", path) { unsafe rename(new, path) }
        }
    }

    private static func remove(_ path: String) throws(SystemError) {
        guard let status = SystemFile.status(ofLink: path) else { return }
        if status.st_mode & S_IFMT == S_IFDIR {
            if unsafe rmdir(path) != 0, errno != ENOTEMPTY, errno != EBUSY {
                throw SystemError("rmdir", path, code: errno)
            }
        } else {
            try SystemCall.require("unlink", path) { unsafe unlink(path) }
        }
    }

    private static func write(
        _ octets: [UInt8], _ path: String, mode: UInt32, owner: UInt32, group: UInt32
    ) throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let file = try Descriptor.made(by: "open", path) { unsafe open(path, flags, 0o600) }
        try file.write(octets, path)
        try SystemCall.require("fchown", path) { fchown(file.raw, owner, group) }
        try SystemCall.require("fchmod", path) { fchmod(file.raw, mode) }
        try SystemCall.require("fsync", path) { fsync(file.raw) }
    }
}
