internal import Glibc

/// A system call that failed, with its subject and the reason.
public struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The call's name in section 2 of the manual.
    public let call: String
    /// The address or path of the call; may be empty.
    public let subject: String
    /// The value of `errno`.
    public let code: Int32

    public init(_ call: String, _ subject: String = "", code: Int32) {
        (self.call, self.subject, self.code) = (call, subject, code)
    }

    /// One line, as in `bind 127.0.0.1:53: Address already in use`.
    public var description: String { subject.isEmpty ? "\(call): \(reason)" : "\(call) \(subject): \(reason)" }

    /// The system's text, such as `Address already in use`.
    public var reason: String {
        switch (call, code) {
        case ("open", EINVAL): "Not a regular file"
        case ("open", ENXIO): "No program writes to this pipe"
        case ("connect", EAGAIN) where !subject.hasPrefix("/"): "Every local port is in use"
        case ("setsockopt", EPERM) where subject == "SO_MARK": "\(Self.reason(code)), it needs CAP_NET_ADMIN"
        case (_, EMFILE): "\(Self.reason(code)), LimitNOFILE= of the unit or ulimit -n sets how many there may be"
        default: Self.reason(code)
        }
    }

    private static func reason(_ code: Int32) -> String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
            // Sound: strerror_r writes a terminated text of at most `count` bytes into the buffer; for an unknown
            // number it writes a text for that case.
            unsafe buffer.initialize(repeating: 0)
            _ = unsafe strerror_r(code, buffer.baseAddress!, buffer.count)
            return unsafe String(cString: buffer.baseAddress!)
        }
    }

    /// The description, with advice where the reason does not contain any.
    public var explained: String { advice.map { "\(self): \($0)" } ?? description }

    private var advice: String? {
        switch (call, code) {
        case ("bind", EADDRINUSE): "another program has it; ss -lntup says which"
        case ("bind", EACCES): "ports below 1024 need root or CAP_NET_BIND_SERVICE"
        case ("bind", EADDRNOTAVAIL): "this machine does not have that address"
        case ("connect", EACCES): "only root and the daemon's own group may use it"
        default: nil
        }
    }

    /// Whether this machine does not have the address, or no address of its family.
    public var isAddressMissing: Bool { code == EADDRNOTAVAIL || code == EAFNOSUPPORT }
    /// Whether the file, or a folder on the way to it, does not exist.
    public var isNotFound: Bool { code == ENOENT || code == ENOTDIR }
    /// Whether this user lacks the permission.
    public var isDenied: Bool { code == EACCES || code == EPERM }
    /// Whether the peer, or a machine on the way to it, has reset the connection.
    public var isReset: Bool { code == ECONNRESET || code == EPIPE }
    /// Whether the peer has not acknowledged data, or not answered the dialling, for too long.
    public var isTimeout: Bool { code == ETIMEDOUT }
    /// Whether the system is out of a resource that the call needs: descriptors, memory, watches.
    public var isShortage: Bool { [EMFILE, ENFILE, ENOMEM, ENOSPC].contains(code) }
    /// Whether a socket failed for a reason of this machine: the peer is not to blame.
    public var isOwn: Bool {
        switch code {
        case ENOBUFS: true
        case EAGAIN: call == "connect"
        default: isShortage
        }
    }
}

/// The only code that handles errno: an interrupted call is repeated, and "would block" is a value.
enum SystemCall {
    enum Outcome {
        case done(Int)
        case wouldBlock
        case failed(Int32)
    }

    @inline(__always)
    static func attempt(_ body: () -> Int) -> Outcome {
        while true {
            let result = body()
            if result >= 0 { return .done(result) }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            case let code: return .failed(code)
            }
        }
    }

    /// For calls that cannot block; a "would block" from one is an error like any other.
    @discardableResult
    static func require(
        _ call: String, _ subject: @autoclosure () -> String = "", _ body: () -> Int32
    ) throws(SystemError) -> Int32 {
        switch attempt({ Int(body()) }) {
        case .done(let result): return Int32(truncatingIfNeeded: result)
        case .wouldBlock: throw SystemError(call, subject(), code: EAGAIN)
        case .failed(let code): throw SystemError(call, subject(), code: code)
        }
    }
}
