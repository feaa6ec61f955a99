internal import Glibc

/// A file with mode 0600 that is written part by part and then replaces another, whole or not at all.
///
/// Until then the file is beside the other, with `.new` after its name, under a lock: of two writers one fails, and the
/// remains of a crash are overwritten. A symbolic link at the path is replaced; any other non-regular file is left
/// alone.
public struct ReplacementFile: ~Copyable {
    private let path: String
    private let temporary: String
    private let file: Descriptor
    private var isCommitted = false

    /// Attempts to lock a file that another writer renames at the same moment.
    private static let maximumAttempts = 8

    private init(_ path: String, _ temporary: String, _ file: consuming Descriptor) {
        self.path = path
        self.temporary = temporary
        self.file = file
    }

    /// - Throws: The system's error; EAGAIN if another process is writing, EEXIST if the path is neither free nor a
    ///   regular file.
    public static func begin(_ path: String) throws(SystemError) -> ReplacementFile {
        if let status = SystemFile.status(of: path), status.st_mode & S_IFMT != S_IFREG {
            throw SystemError("replace", path, code: EEXIST)
        }
        let temporary = path + ".new"
        let file = try Self.lock(temporary)
        try SystemCall.require("fchmod", temporary) { fchmod(file.raw, 0o600) }
        try SystemCall.require("ftruncate", temporary) { ftruncate(file.raw, 0) }
        return ReplacementFile(path, temporary, file)
    }

    deinit {
        // The lock is still held, so it is not another writer's file.
        if !isCommitted { _ = unsafe unlink(temporary) }
    }

    public func write(_ bytes: [UInt8]) throws(SystemError) { try file.write(bytes, temporary) }

    /// Waits until the file is on the disk, then renames it. After a loss of power the old file may be back, whole.
    public mutating func commit() throws(SystemError) {
        try SystemCall.require("fsync", temporary) { fsync(file.raw) }
        try SystemCall.require("rename", path) { unsafe rename(temporary, path) }
        isCommitted = true
    }

    private static func lock(_ path: String) throws(SystemError) -> Descriptor {
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        for _ in 0..<maximumAttempts {
            let file = try Descriptor.made(by: "open", path) { unsafe open(path, flags, 0o600) }
            try SystemCall.require("flock", path) { flock(file.raw, LOCK_EX | LOCK_NB) }
            var locked = stat()
            // If the file was renamed between the two calls, it is the other writer's finished file.
            if unsafe fstat(file.raw, &locked) == 0, let named = SystemFile.status(of: path),
                SystemFile.isSame(locked, named)
            {
                return file
            }
        }
        throw SystemError("flock", path, code: EAGAIN)
    }
}

/// A small file that is often replaced as a whole.
public struct KeptFile {
    public let path: String
    private var isFailing = false

    public init(_ path: String) { self.path = path }

    /// - Parameter failed: Called with the reason if the file cannot be written; of failures in a row, only the first
    ///   is reported.
    /// - Returns: Whether the file was written.
    @discardableResult
    public mutating func write(_ octets: [UInt8], failed: (SystemError) -> Void) -> Bool {
        do throws(SystemError) {
            var file = try ReplacementFile.begin(path)
            try file.write(octets)
            try file.commit()
            isFailing = false
        } catch {
            if !isFailing { failed(error) }
            isFailing = true
        }
        return !isFailing
    }
}

extension Descriptor {
    /// Writes all of these bytes.
    /// - Parameter path: The path of the file, for errors.
    func write(_ bytes: [UInt8], _ path: String) throws(SystemError) {
        var written = 0
        while written < bytes.count {
            // Sound: the kernel reads at most `count` bytes, from `written` on.
            let outcome = unsafe bytes.withUnsafeBytes { data in
                SystemCall.attempt { unsafe Glibc.write(raw, data.baseAddress! + written, data.count - written) }
            }
            switch outcome {
            case .done(let count): written += count
            case .wouldBlock: throw SystemError("write", path, code: EAGAIN)
            case .failed(let code): throw SystemError("write", path, code: code)
            }
        }
    }
}

/// A regular file read part by part.
public struct ReadableFile: ~Copyable {
    /// Its length when it was opened, in bytes.
    public let length: Int
    private let path: String
    private let file: Descriptor

    /// - Throws: The system's error; EISDIR or EINVAL if it is not a regular file.
    public init(_ path: String) throws(SystemError) {
        // Nonblocking: opening a pipe would wait for its writer.
        let flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK
        let file = try Descriptor.made(by: "open", path) { unsafe open(path, flags) }
        var status = stat()
        try SystemCall.require("fstat", path) { unsafe fstat(file.raw, &status) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw SystemError("open", path, code: status.st_mode & S_IFMT == S_IFDIR ? EISDIR : EINVAL)
        }
        length = Int(status.st_size)
        self.path = path
        self.file = file
    }

    /// The bytes in `range`; fewer if the file has become shorter.
    public func read(_ range: Range<Int>) throws(SystemError) -> [UInt8] {
        var failure: SystemError?
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: range.count) { buffer, filled in
            while filled < range.count {
                // Sound: the rest of the buffer begins at `filled`.
                let rest = unsafe buffer.baseAddress! + filled
                let wanted = range.count - filled
                let from = off_t(range.lowerBound + filled)
                switch SystemCall.attempt({ unsafe pread(file.raw, rest, wanted, from) }) {
                case .done(0): return
                case .done(let count): filled += count
                case .wouldBlock:
                    failure = SystemError("read", path, code: EAGAIN)
                    return
                case .failed(let code):
                    failure = SystemError("read", path, code: code)
                    return
                }
            }
        }
        if let failure { throw failure }
        return bytes
    }
}

extension SystemFile {
    /// Renames a file within its file system; replaces a file with that name.
    public static func move(_ path: String, to other: String) throws(SystemError) {
        try SystemCall.require("rename", path) { unsafe rename(path, other) }
    }

    /// Removes a file.
    public static func remove(_ path: String) throws(SystemError) {
        try SystemCall.require("unlink", path) { unsafe unlink(path) }
    }
}
