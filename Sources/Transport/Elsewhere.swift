internal import Dispatch
internal import Glibc
internal import Synchronization

extension EventLoop {
    /// Does work on another thread that would block the loop too long, such as reading files. Callable from any thread.
    /// - Parameter take: Gets the result, on the loop.
    public func elsewhere<Value: Sendable>(
        _ work: @escaping @Sendable () -> Value, then take: @escaping @Sendable (Value) -> Void
    ) {
        DispatchQueue.global().async { [self] in
            let value = work()
            submit { take(value) }
        }
    }
}

extension SystemFile {
    /// Reads a small file on another thread and waits for it, for a limited time: a disk that hangs must not prevent
    /// the daemon's start.
    /// - Throws: The errors of `read`; ETIME if the read takes longer than `milliseconds`.
    package static func soon<Contents: Sendable>(
        _ path: String, milliseconds: Int = 1000,
        _ read: @escaping @Sendable (_ path: String) throws(SystemError) -> Contents
    ) throws(SystemError) -> Contents {
        let contents = Mutex<Result<Contents, SystemError>?>(nil)
        let isRead = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            let result = Result { () throws(SystemError) in try read(path) }
            contents.withLock { $0 = result }
            isRead.signal()
        }
        _ = isRead.wait(timeout: .now() + .milliseconds(milliseconds))
        guard let result = contents.withLock({ $0 }) else { throw SystemError("read", path, code: ETIME) }
        return try result.get()
    }
}
