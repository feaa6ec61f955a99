internal import CLinux

/// The memory of the program itself: its code and that of its libraries, and who may look into it.
public enum ProgramMemory {
    /// Keeps what is in memory from core dumps and from other programs of the same user (debuggers, `/proc/PID/mem`,
    /// `/proc/PID/environ`): a key or a token is there from now on. Root still may.
    public static func holdsSecrets() {
        clinux_forbid_dumps()
    }

    /// Gives up the pages of code and constants that were touched so far; what is used again comes back from the page
    /// cache, 64 KiB for about a microsecond. Most of what a start touches (options, settings, type metadata, OpenSSL's
    /// algorithms) is not needed again.
    public static func forgetUnusedCode() {
        clinux_forget_unwritable_pages()
    }
}
