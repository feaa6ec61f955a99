internal import CLinux

/// What this process was given when it was started.
public enum Environment {
    /// The arguments of `main` without the program's own name, whether `/proc` is there or not.
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

    /// The name by which this program was started: a path, or a name that was looked for in PATH.
    public static var program: String {
        unsafe clinux_arguments().pointee.map { unsafe String(cString: $0) } ?? ""
    }

    /// All environment variables, as they were when one was asked for first. One without a `=` is left out.
    public static let variables: [String: String] = {
        var variables: [String: String] = [:]
        // Sound: the array ends with a null pointer, and nothing in this program changes the environment.
        var next = unsafe clinux_environment()
        while let entry = unsafe next.pointee {
            let text = unsafe String(cString: entry)
            if let equals = text.firstIndex(of: "=") {
                variables[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            unsafe next += 1
        }
        return variables
    }()
}
