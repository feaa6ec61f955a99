internal import CLinux

/// The memory of the program's code and of its libraries, and its protection from other processes.
public enum ProgramMemory {
    /// Keeps memory out of core dumps and away from other programs of the same user (debuggers, `/proc/PID/mem`,
    /// `/proc/PID/environ`); called before the first key or token is read. Root still has access.
    public static func holdsSecrets() {
        clinux_forbid_dumps()
    }

    /// Gives up the pages of code and constants that were used so far; a page that is used again comes back from the
    /// page cache, 64 KiB for about a microsecond. Most of the code that runs at the start (options, settings, type
    /// metadata, OpenSSL's algorithms) is not needed again.
    public static func forgetUnusedCode() {
        clinux_forget_unwritable_pages()
    }
}
