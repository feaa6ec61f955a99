/// The contents of a file when it was read: usable until they are forgotten, and comparable afterwards.
struct FileContents: Sendable, Equatable {
    /// Nil once the contents are forgotten.
    private(set) var secret: Secret?
    private let digest: Digest

    init(_ bytes: [UInt8]) { (secret, digest) = (Secret(bytes), Digest(bytes)) }

    var bytes: [UInt8]? { secret?.bytes }

    /// Forgets the contents; they can still be compared.
    mutating func forget() { secret = nil }

    static func == (left: Self, right: Self) -> Bool { left.digest == right.digest }
}

/// A keyed hash for comparing octets that are no longer held: different octets have the same hash with a probability of
/// 2^-64. The key (SipHash) is this process's own, so the hash reveals nothing of the octets, and an attacker cannot
/// construct octets of the same hash.
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
