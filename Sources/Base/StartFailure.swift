/// Why the daemon did not start; the program's exit code follows from it.
public enum StartFailure: Error, Sendable, Equatable {
    /// A setting turned out wrong when it was used: its key, and what would be right.
    case setting(key: String, String)
    /// A socket or a file was not available; the text says which and why.
    case system(String)

    package static func ofSystem<T, Failure: CustomStringConvertible>(
        saying words: (Failure) -> String = { $0.description }, _ body: () throws(Failure) -> T
    ) throws(StartFailure) -> T {
        do throws(Failure) {
            return try body()
        } catch {
            throw .system(words(error))
        }
    }
}
