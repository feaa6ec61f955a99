internal import CLinux

/// The memory that the program itself takes: its code and that of its libraries.
public enum ProgramMemory {
    /// Gives up the pages of code and constants that were touched so far; what is used again comes back from the page cache,
    /// 64 KiB for about a microsecond. Most of what a start touches (options, settings, type metadata, OpenSSL's
    /// algorithms) is not needed again.
    public static func forgetUnusedCode() {
        clinux_forget_unwritable_pages()
    }
}
