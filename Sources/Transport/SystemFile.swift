internal import Glibc

/// Reads whole small files.
public enum SystemFile {
    /// Whether this process may write to the file at this path, by access(2).
    package static func isWritable(_ path: String) -> Bool { unsafe access(path, W_OK) == 0 }

    /// The permission bits of a file that every user of this machine can read: it is readable by all, and each folder
    /// on the way can be entered by all. Nil: not every user can.
    public static func modeOpenToAll(_ path: String) -> UInt32? {
        guard let mode = permissions(of: path), mode & S_IROTH != 0 else { return nil }
        let slashes = path.indices.filter { path[$0] == "/" }
        let folders = slashes.map { $0 == path.startIndex ? "/" : String(path[..<$0]) }
        guard folders.allSatisfy({ permissions(of: $0).map { $0 & S_IXOTH != 0 } ?? false }) else { return nil }
        return mode & 0o7777
    }

    private static func permissions(of path: String) -> mode_t? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? status.st_mode : nil
    }

    /// Reads a file or a pipe to its end.
    ///
    /// - Parameter limit: The most bytes it may have.
    /// - Throws: What the system says; EFBIG when there is more than `limit`.
    public static func read(_ path: String, limit: Int) throws(SystemError) -> [UInt8] {
        let file = Descriptor(
            adopting: try SystemCall.require("open", path) { unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) })
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: min(16_384, limit + 1))
        while true {
            // Sound: the kernel writes at most `count` bytes.
            let outcome = unsafe chunk.withUnsafeMutableBufferPointer { room in
                SystemCall.attempt { unsafe Glibc.read(file.raw, room.baseAddress, room.count) }
            }
            switch outcome {
            case .done(0): return bytes
            case .done(let count):
                guard bytes.count + count <= limit else { throw SystemError("read", path, code: EFBIG) }
                bytes.append(contentsOf: chunk[..<count])
            case .wouldBlock: throw SystemError("read", path, code: EAGAIN)
            case .failed(let code): throw SystemError("read", path, code: code)
            }
        }
    }
}
