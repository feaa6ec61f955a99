internal import Glibc

/// What the machine gives the process.
package enum Machine {
    /// `listen.workers`: 0 = one a core, at most four: more would only take turns.
    package static func workers(_ configured: Int) -> Int {
        configured > 0 ? configured : min(4, max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    }

    /// Each question to a local resolver has a socket of its own, so the usual 1024 descriptors are few.
    package static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
