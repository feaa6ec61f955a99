internal import Glibc

/// The only owner of an open file descriptor; closes it at the end of its life.
public struct Descriptor: ~Copyable, Sendable {
    /// The number, -1 once closed.
    public private(set) var raw: Int32

    public init(adopting raw: Int32) { self.raw = raw }

    /// The descriptor that a system call returns.
    /// - Parameter subject: As in ``SystemError/subject``.
    @inline(__always)
    static func made(by call: String, _ subject: String = "", _ body: () -> Int32) throws(SystemError) -> Descriptor {
        Descriptor(adopting: try SystemCall.require(call, subject, body))
    }

    /// Closes the descriptor early; a second call has no effect.
    public mutating func close() {
        guard raw >= 0 else { return }
        // Linux has closed the descriptor even after EINTR: a second call could close another file's.
        _ = Glibc.close(raw)
        raw = -1
    }

    deinit {
        if raw >= 0 { _ = Glibc.close(raw) }
    }
}
