import Daemon
import Glibc

/// Lines for people and scripts. Unbuffered, so that nothing is lost or reordered when the program ends.
enum StandardOutput {
    static func write(_ line: String) { writeLine(line, to: STDOUT_FILENO) }
}

enum StandardError {
    /// An error or a warning; in the journal it has that priority (sd-daemon(3)).
    static func write(_ line: String, isError: Bool = true) {
        writeLine((Journal.isStandardError ? isError ? "<3>" : "<4>" : "") + line, to: STDERR_FILENO)
    }
}

private func writeLine(_ line: String, to descriptor: Int32) {
    let bytes = Array((line + "\n").utf8)
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { return }
        rest = rest.dropFirst(count)
    }
}
