internal import Glibc

/// The only owner of an open file descriptor; closes it at the end of its life.
public struct Descriptor: ~Copyable, Sendable {
    /// The number, -1 once closed.
    public private(set) var raw: Int32

    public init(adopting raw: Int32) {
        self.raw = raw
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
