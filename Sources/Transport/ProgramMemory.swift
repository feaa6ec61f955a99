internal import CLinux

/// The memory of the program, and its protection from other processes.
public enum ProgramMemory {
    /// Excludes memory from core dumps and from other programs of the same user (debuggers, `/proc/PID/mem`,
    /// `/proc/PID/environ`); called before the first key or token is read. Root still has access.
    public static func holdsSecrets() { clinux_forbid_dumps() }

    /// Uses one heap for all threads: the forwarder's loop frees memory that a listener has allocated for a question,
    /// and with a heap for each thread both would grow. Hits allocate nothing, so the shared lock costs nothing. Call
    /// while there is one thread.
    public static func shareHeap() { clinux_share_heap() }

    /// Returns free memory of the heap to the system. Allocations of other threads wait meanwhile, so call it only
    /// after much was freed.
    public static func trimHeap() { clinux_trim_heap() }
}
