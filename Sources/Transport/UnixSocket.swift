internal import CLinux
internal import Glibc

/// A listening unix socket with a name in the file system, which the listener removes when it stops. It is confined as
/// ``StreamListener`` is.
public final class UnixListener: @unchecked Sendable {
    public let path: String
    private let listener: StreamListener
    /// The file that the listener made; another daemon may have replaced it with its own.
    private let file: stat?

    private static let backlog: Int32 = 16
    /// The mode that lets owner and group connect; root always may.
    private static let mode: mode_t = 0o660
    private static let directoryMode: mode_t = 0o750

    private init(_ listener: StreamListener, path: String) {
        (self.listener, self.path) = (listener, path)
        file = SystemFile.status(ofLink: path)
    }

    /// Binds and listens, for the owner and the group of this process only. A missing folder is made; a socket on which
    /// no process listens is replaced.
    ///
    /// - Throws: EADDRINUSE if another process listens there, EEXIST if the file is not a socket, else the system's
    ///   error.
    public static func listen(_ path: String) throws(SystemError) -> UnixListener {
        guard let address = UnixAddress(path) else { throw SystemError("bind", path, code: ENAMETOOLONG) }
        let folder = SystemFile.folders(of: path).last ?? "."
        if unsafe mkdir(folder, directoryMode) != 0, errno != EEXIST { throw SystemError("mkdir", folder, code: errno) }
        // The lock makes two daemons that start together check and bind one after the other.
        let lock = try Descriptor.made(by: "open", folder) { unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        try SystemCall.require("flock", folder) { flock(lock.raw, LOCK_EX | LOCK_NB) }
        try removeDead(path, address)
        let descriptor = try Descriptor.socket(AF_UNIX, .stream)
        // The file has the mode of the socket from the start; the process's umask can only narrow it.
        try SystemCall.require("fchmod", path) { fchmod(descriptor.raw, mode) }
        try SystemCall.require("bind", path) {
            unsafe address.withStorage { unsafe Glibc.bind(descriptor.raw, $0, $1) }
        }
        try SystemCall.require("chmod", path) { unsafe chmod(path, mode) }
        try SystemCall.require("listen", path) { Glibc.listen(descriptor.raw, backlog) }
        return UnixListener(StreamListener(descriptor, path: path), path: path)
    }

    /// Whether a process listens at this path.
    public static func isAnswered(_ path: String) -> Bool {
        guard let address = UnixAddress(path), let caller = try? Descriptor.socket(AF_UNIX, .stream) else {
            return false
        }
        return caller.connect(address) == 0
    }

    private static func removeDead(_ path: String, _ address: UnixAddress) throws(SystemError) {
        guard let status = SystemFile.status(ofLink: path) else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw SystemError("bind", path, code: EEXIST) }
        let caller = try Descriptor.socket(AF_UNIX, .stream)
        let code = caller.connect(address)
        guard code == ECONNREFUSED else { throw SystemError("bind", path, code: code == 0 ? EADDRINUSE : code) }
        try SystemCall.require("unlink", path) { unsafe unlink(path) }
    }

    /// Begins to accept. Call on the loop, or before the loop starts.
    /// - Parameter failed: See ``StreamListener/start(in:failed:accepted:)``.
    public func start(
        in loop: EventLoop, failed: @escaping (SystemError) -> Void,
        accepted: @escaping (consuming StreamSocket) -> Void
    ) throws(SystemError) {
        try listener.start(in: loop, failed: failed, accepted: { socket, _ in accepted(socket) })
    }

    /// A connection has ended. Call on the loop.
    public func connectionEnded() { listener.openReserves() }

    /// Closes the socket and removes its file. Call on the loop.
    public func stop() {
        listener.stop()
        guard let file, let present = SystemFile.status(ofLink: path), SystemFile.isSame(present, file) else { return }
        _ = unsafe unlink(path)
    }
}

extension StreamSocket {
    /// Connects to a unix socket.
    /// - Throws: EAGAIN also if the listening process does not accept connections.
    public static func connect(toPath path: String) throws(SystemError) -> StreamSocket {
        guard let address = UnixAddress(path) else { throw SystemError("connect", path, code: ENAMETOOLONG) }
        let descriptor = try Descriptor.socket(AF_UNIX, .stream)
        let code = descriptor.connect(address)
        guard code == 0 else { throw SystemError("connect", path, code: code) }
        return StreamSocket(adopting: descriptor)
    }
}

extension Descriptor {
    /// Connects and returns the error number, 0 for success; on a unix socket the outcome is known at once.
    fileprivate func connect(_ address: UnixAddress) -> Int32 {
        unsafe address.withStorage { unsafe Glibc.connect(raw, $0, $1) } == 0 ? 0 : errno
    }
}

/// The kernel's form of a path, struct sockaddr_un.
private struct UnixAddress {
    private var name = sockaddr_un()

    /// nil if the path is empty or too long.
    init?(_ path: String) {
        let bytes = Array(path.utf8)
        guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: name.sun_path) else { return nil }
        name.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &name.sun_path) { unsafe $0.copyBytes(from: bytes) }
    }

    func withStorage(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        unsafe withUnsafePointer(to: name) { pointer in
            // Sound: sockaddr is the head that every address in memory begins with; the kernel reads `length` bytes.
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
