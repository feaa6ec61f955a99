import Dispatch
import Synchronization

/// Blocks the thread until work on other queues has given its result.
/// - Parameter begin: Starts the work; it must call the given closure once.
package func waiting<Result: Sendable>(for begin: (@escaping @Sendable (Result) -> Void) -> Void) -> Result {
    let arrived = DispatchSemaphore(value: 0)
    let said = Mutex<Result?>(nil)
    begin { result in
        said.withLock { $0 = result }
        arrived.signal()
    }
    while true {
        arrived.wait()
        if let result = said.withLock({ $0 }) { return result }
    }
}
