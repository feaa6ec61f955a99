internal import CLinux

/// The memory of the program, and its protection from other processes.
public enum ProgramMemory {
    /// Excludes memory from core dumps and from other programs of the same user (debuggers, `/proc/PID/mem`,
    /// `/proc/PID/environ`); called before the first key or token is read. Root still has access.
    public static func holdsSecrets() {
        clinux_forbid_dumps()
    }
}
