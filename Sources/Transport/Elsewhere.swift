internal import Dispatch

extension EventLoop {
    /// Does on another thread what takes longer than the loop may stand still, such as reading files. From any thread.
    /// - Parameter take: handed the result, on the loop.
    public func elsewhere<Value: Sendable>(
        _ work: @escaping @Sendable () -> Value, then take: @escaping @Sendable (Value) -> Void
    ) {
        DispatchQueue.global().async { [self] in
            let value = work()
            submit { take(value) }
        }
    }
}
