/// What a file held when it was read: to be used once, and to be compared from then on.
struct FileContents: Sendable, Equatable {
    /// Nil once they are forgotten.
    private(set) var secret: Secret?
    private let digest: Digest

    init(_ bytes: [UInt8]) { (secret, digest) = (Secret(bytes), Digest(bytes)) }

    var bytes: [UInt8]? { secret?.bytes }

    /// The contents can still be compared, and no more.
    mutating func forget() { secret = nil }

    static func == (left: Self, right: Self) -> Bool { left.digest == right.digest }
}

/// Stands for octets that need not be kept: equal for equal ones, and for others not but by a chance of 1 to 2^64. Its
/// key is this process's own (SipHash), so it tells nothing of them, and nobody makes others that have it.
struct Digest: Sendable, Equatable {
    private let hash: Int
    private let count: Int

    init(_ octets: some Sequence<UInt8>) {
        var hasher = Hasher()
        var count = 0
        for octet in octets {
            hasher.combine(octet)
            count += 1
        }
        (hash, self.count) = (hasher.finalize(), count)
    }
}
