import Base

/// A file that a key names, and its contents. Two are equal if their paths and contents are.
public struct NamedFile: Sendable, Equatable {
    /// Empty for none.
    public var path = ""
    /// Nil before the file is read.
    var contents: FileContents?

    /// Whether no file is named.
    public var isEmpty: Bool { path.isEmpty }
}

/// The contents of a file when it was read. They can be used until they are forgotten, and compared afterwards.
struct FileContents: Sendable, Equatable {
    /// Nil once the contents are forgotten.
    private(set) var secret: Secret?
    /// A keyed hash of the contents (SipHash): different contents share it with a probability of 2^-64. The key is this
    /// process's own, so the hash reveals nothing, and an attacker cannot construct contents of the same hash.
    private let hash: Int

    init(_ bytes: [UInt8]) { (secret, hash) = (Secret(bytes), bytes.hashValue) }

    var bytes: [UInt8]? { secret?.bytes }

    /// Forgets the contents; they can still be compared.
    mutating func forget() { secret = nil }

    static func == (left: Self, right: Self) -> Bool { left.hash == right.hash }
}
