import DNSWire

/// A name to look up by: it is hashed once, in one piece, where a `Name` would be at every look, octet by octet.
struct NameKey: Hashable {
    let name: Name
    private let digest: Int

    init(_ name: Name) {
        self.name = name
        digest = Self.digest(name.wire, from: 0)
    }

    /// Keyed for this process: nobody can choose names that all fall into one bucket.
    static func digest(_ wire: [UInt8], from offset: Int) -> Int {
        var hasher = Hasher()
        // The octets from `offset` on, read within the closure.
        unsafe wire.withUnsafeBytes { unsafe hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: $0[offset...])) }
        return hasher.finalize()
    }

    func hash(into hasher: inout Hasher) { hasher.combine(digest) }

    static func == (a: NameKey, b: NameKey) -> Bool { a.digest == b.digest && a.name == b.name }
}
