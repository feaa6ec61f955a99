internal import CLinux

/// The environment variables of this process.
public enum Environment {
    /// All of them. One without a `=` is left out.
    public static var variables: [String: String] {
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
    }
}
