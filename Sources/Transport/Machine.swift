internal import Glibc

/// Threads, descriptors and the name of the machine.
package enum Machine {
    /// The number of listeners for `listen.workers`. With 0 there is one for each core, at most four, since more would
    /// only take turns.
    package static func workers(_ configured: Int) -> Int {
        configured > 0 ? configured : min(4, max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    }

    /// The name of this machine, as in hostname(1); empty if there is none.
    package static var hostName: String {
        // POSIX allows no longer name; a name that does not fit has no zero at its end.
        var name = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&name, name.count - 1) == 0 else { return "" }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Gives this thread, and threads that it starts, the lowest priority from now on (sched(7)).
    package static func lowerPriority() { _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19) }

    /// Raises the limit of open descriptors: each query to a local resolver has a socket of its own, so the usual 1024
    /// are few.
    package static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
