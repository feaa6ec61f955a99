internal import Glibc

/// A folder of this user alone, at a path that each program of the user can derive from its name.
public enum OwnFolder {
    /// `$XDG_RUNTIME_DIR/NAME`, or without that variable `/tmp/NAME-USER`.
    public static func path(_ name: String, _ environment: [String: String]) -> String {
        let folder = environment["XDG_RUNTIME_DIR", default: ""]
        return folder.hasPrefix("/") ? "\(folder)/\(name)" : "/tmp/\(name)-\(geteuid())"
    }

    /// Whether the folder exists, and no other user can change its contents.
    public static func isOwn(_ path: String) -> Bool {
        guard let status = SystemFile.status(ofLink: path) else { return false }
        return status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid() && status.st_mode & 0o022 == 0
    }

    /// Makes the folder, if it does not exist.
    /// - Throws: The system's error; EEXIST if the folder is not this user's own.
    public static func make(_ path: String) throws(SystemError) {
        if unsafe mkdir(path, 0o700) != 0, errno != EEXIST { throw SystemError("mkdir", path, code: errno) }
        guard isOwn(path) else { throw SystemError("mkdir", path, code: EEXIST) }
    }
}
