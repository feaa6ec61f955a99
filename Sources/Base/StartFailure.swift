/// The reason for which the daemon did not start; it decides the program's exit code.
public enum StartFailure: Error, Sendable, Equatable {
    /// A setting proved wrong in use: its key, the number of its list item from 1, and the remedy. If another item of
    /// the settings is in conflict, the text ends with that item.
    case setting(key: String, item: Int? = nil, String, other: Item? = nil)
    /// A socket or a file was not available; the text has its name and the reason.
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
