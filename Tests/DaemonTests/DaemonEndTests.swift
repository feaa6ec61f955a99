import Foundation
import ShellTestSupport
import Synchronization
import Testing

@testable import Daemon

@Suite struct DaemonEndTests {
    @Test func itComesWhenAllPartsHaveEnded() {
        let ended = Atomic(0)
        let done = DispatchSemaphore(value: 0)
        let parts = (1...3).map { _ in
            { (end: @escaping @Sendable () -> Void) in
                DispatchQueue.global().async {
                    ended.add(1, ordering: .sequentiallyConsistent)
                    end()
                }
            }
        }
        Daemon.end(parts, within: .seconds(60)) {
            #expect(ended.load(ordering: .sequentiallyConsistent) == 3)
            done.signal()
        }
        done.wait()
    }

    @Test("a part that does not end within the time is not waited for, and may end later")
    func aPartThatDoesNotEnd() {
        let late = Mutex<(@Sendable () -> Void)?>(nil)
        let done = DispatchSemaphore(value: 0)
        Daemon.end([{ $0() }, { end in late.withLock { $0 = end } }], within: .milliseconds(50)) { done.signal() }
        done.wait()
        late.withLock { $0 }?()
    }

    @Test func withoutPartsItComesAtOnce() {
        let done = DispatchSemaphore(value: 0)
        Daemon.end([], within: .seconds(60)) { done.signal() }
        done.wait()
    }
}
