internal import CLinux

/// The C library's memory.
public enum Heap {
    /// Uses one heap for all threads: the forwarder's loop frees memory that a listener has allocated for a question,
    /// and with a heap for each thread both would grow. Hits allocate nothing, so the shared lock costs nothing. Call
    /// while there is one thread.
    public static func share() {
        clinux_share_heap()
    }

    /// Returns free memory to the system. Allocations of other threads wait meanwhile, so call it only after much was
    /// freed.
    public static func trim() { clinux_trim_heap() }
}
