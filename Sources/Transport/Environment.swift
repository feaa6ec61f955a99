internal import CLinux

/// The arguments and variables that this process was started with.
public enum Environment {
    /// The arguments of `main` without the program's own name, with or without `/proc`.
    public static var arguments: [String] {
        var words: [String] = []
        // Sound: the array ends with a null pointer, and nothing in this program changes it.
        var next = unsafe clinux_arguments()
        while let word = unsafe next.pointee {
            words.append(unsafe String(cString: word))
            unsafe next += 1
        }
        return Array(words.dropFirst())
    }

    /// The name by which this program was started: a path, or a name found in PATH.
    public static var program: String {
        unsafe clinux_arguments().pointee.map { unsafe String(cString: $0) } ?? ""
    }

    /// All environment variables, as of the first use. An entry without a `=` is left out.
    public static let variables: [String: String] = {
        var variables: [String: String] = [:]
        // Sound: the array ends with a null pointer, and nothing in this program changes the environment.
        var next = unsafe clinux_environment()
        while let entry = unsafe next.pointee {
            let text = unsafe String(cString: entry)
            if let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) {
                variables[String(text[..<equals])] = String(text[text.utf8.index(after: equals)...])
            }
            unsafe next += 1
        }
        return variables
    }()
}
