import Foundation
import ShellTestSupport
import Synchronization
import Testing

@testable import Daemon

@Suite struct DaemonEndTests {
    @Test func itComesWhenAllPartsHaveEnded() {
        let ended = Atomic(0)
        let parts = (1...3).map { _ in
            { (end: @escaping @Sendable () -> Void) in
                DispatchQueue.global().async {
                    ended.add(1, ordering: .sequentiallyConsistent)
                    end()
                }
            }
        }
        expectEnd { done in
            Daemon.end(parts, within: .seconds(60)) {
                #expect(ended.load(ordering: .sequentiallyConsistent) == 3)
                done()
            }
        }
    }

    @Test("a part that does not end within the time is not waited for, and may end later")
    func aPartThatDoesNotEnd() {
        let late = Mutex<(@Sendable () -> Void)?>(nil)
        let parts: [Daemon.End] = [{ $0() }, { end in late.withLock { $0 = end } }]
        expectEnd { Daemon.end(parts, within: .milliseconds(50), $0) }
        late.withLock { $0 }?()
    }

    @Test func withoutPartsItComesAtOnce() {
        expectEnd { Daemon.end([], within: .seconds(60), $0) }
    }
}
