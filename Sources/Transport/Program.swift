internal import Glibc

/// Other programs of this machine.
public enum Program {
    /// Whether this process runs as root.
    public static var isRoot: Bool { geteuid() == 0 }

    /// Runs a program to its end, without input; its standard error is this program's.
    /// - Parameter words: The program's name, searched in PATH, and its arguments.
    /// - Returns: The program's exit code, or 128 plus the number of the signal that ended it.
    public static func run(_ words: [String]) throws(SystemError) -> Int32 {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
        // Sound: each word is freed below, and the list ends with a null pointer.
        var arguments: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) } + [nil]
        defer { for index in words.indices { unsafe free(arguments[index]) } }
        var process: pid_t = 0
        let code = unsafe posix_spawnp(&process, words[0], &actions, nil, &arguments, environ)
        guard code == 0 else { throw SystemError("run", words[0], code: code) }
        var status: Int32 = 0
        try SystemCall.require("waitpid", words[0]) { unsafe waitpid(process, &status, 0) }
        return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }

    /// Waits.
    public static func sleep(milliseconds: UInt32) { _ = usleep(milliseconds * 1000) }
}
