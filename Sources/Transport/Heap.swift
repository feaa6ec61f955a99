internal import CLinux

/// The C library's memory.
public enum Heap {
    /// Uses one heap for all threads: memory allocated by a listener for a question is freed by the forwarder's loop,
    /// and with a heap for each thread both heaps would grow. Hits allocate nothing, so the shared lock costs nothing.
    /// Call while there is one thread.
    public static func share() {
        clinux_share_heap()
    }

    /// Gives free memory back to the system. Allocations of other threads wait meanwhile, so it is for the rare moments at which
    /// much was freed.
    public static func trim() { clinux_trim_heap() }
}
