/// Why the daemon did not start; the program's exit code follows from it.
public enum StartFailure: Error, Sendable, Equatable {
    /// A setting turned out wrong when it was used: its key, which item of its list, counted from 1, and what would be right.
    /// The text ends with another item of the settings, if that is what is in the way.
    case setting(key: String, item: Int? = nil, String, other: Item? = nil)
    /// A socket or a file was not available; the text says which and why.
    case system(String)

    /// An item of a list in the settings, counted from 1.
    public struct Item: Sendable, Equatable {
        public let key: String
        public let number: Int

        package init(key: String, number: Int) { (self.key, self.number) = (key, number) }
    }

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
