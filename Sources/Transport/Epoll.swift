internal import CLinux
internal import Glibc

/// The epoll descriptor of an event loop, with the memory for fetched events.
///
/// Sound: the memory is allocated in `init`, freed in `deinit`, and no pointer into it leaves.
@safe
final class Epoll {
    struct Event {
        let token: UInt64
        let readiness: Readiness
        /// An error or a hang-up, which epoll reports for any interest.
        let isFailure: Bool
    }

    let descriptor: Descriptor
    private let events: UnsafeMutablePointer<epoll_event>
    private let capacity: Int

    /// How long a busy loop waits for the next event before it returns to Dispatch, in milliseconds: longer than the
    /// round trip to a distant server, so that consecutive lookups do not change threads twice.
    static let linger: Int32 = 100

    /// - Parameter capacity: The most events of one fetch.
    init(capacity: Int = 64) throws(SystemError) {
        self.capacity = capacity
        descriptor = try Descriptor.made(by: "epoll_create1") { epoll_create1(Int32(EPOLL_CLOEXEC)) }
        unsafe events = .allocate(capacity: capacity)
        unsafe events.initialize(repeating: epoll_event(), count: capacity)
    }

    deinit { unsafe events.deallocate() }

    func add(_ raw: Int32, _ interest: Readiness, token: UInt64) throws(SystemError) {
        try SystemCall.require("epoll_ctl") {
            clinux_epoll_ctl(descriptor.raw, EPOLL_CTL_ADD, raw, Epoll.events(interest), token)
        }
    }

    /// Cannot fail for an added descriptor.
    func modify(_ raw: Int32, _ interest: Readiness, token: UInt64) {
        _ = clinux_epoll_ctl(descriptor.raw, EPOLL_CTL_MOD, raw, Epoll.events(interest), token)
    }

    func remove(_ raw: Int32) { _ = clinux_epoll_ctl(descriptor.raw, EPOLL_CTL_DEL, raw, 0, 0) }

    /// Waits for events at most so long, and returns their number.
    func wait(_ milliseconds: Int32) -> Int {
        let outcome = SystemCall.attempt {
            Int(unsafe epoll_wait(descriptor.raw, events, Int32(capacity), milliseconds))
        }
        guard case .done(let count) = outcome else { return 0 }
        return count
    }

    func event(_ index: Int) -> Event {
        precondition(index < capacity)
        let bits = unsafe events[index].events
        var readiness: Readiness = []
        if bits & EPOLLIN.rawValue != 0 { readiness.insert(.readable) }
        if bits & EPOLLOUT.rawValue != 0 { readiness.insert(.writable) }
        return Event(
            token: unsafe events[index].data.u64, readiness: readiness,
            isFailure: bits & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0)
    }

    private static func events(_ interest: Readiness) -> UInt32 {
        (interest.contains(.readable) ? EPOLLIN.rawValue : 0) | (interest.contains(.writable) ? EPOLLOUT.rawValue : 0)
    }
}
