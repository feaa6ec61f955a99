internal import CLinux

/// The C library's memory.
public enum Heap {
    /// One heap for all threads: what a listener allocates for a question the resolver frees, and with a heap for each
    /// thread both would grow. Hits allocate nothing, so nobody waits. Call while there is one thread.
    public static func share() {
        clinux_share_heap()
    }
}
