import DNSWire

/// Values by name, found for every name at or under theirs.
///
/// No name is made and none hashed but where a name in the table is as long and begins alike: most questions end at a few comparisons.
struct SuffixTable<Value: Sendable>: Sendable {
    private var values: [Int: [(name: Name, value: Value)]] = [:]
    /// For each length, a bit for the beginning of each name in the table that is so many octets long.
    private var beginnings = [UInt64](repeating: 0, count: Name.maximumLength + 1)

    subscript(name: Name) -> Value? {
        get { values[NameKey.digest(name.wire, from: 0)]?.first { $0.name == name }?.value }
        set {
            let digest = NameKey.digest(name.wire, from: 0)
            values[digest, default: []].removeAll { $0.name == name }
            guard let newValue else { return }
            values[digest, default: []].append((name, newValue))
            beginnings[name.wire.count] |= Self.beginning(name.wire, 0)
        }
    }

    /// One of 64 bits, by the first label's length and first letter.
    private static func beginning(_ wire: [UInt8], _ offset: Int) -> UInt64 {
        wire[offset] == 0 ? 1 : 1 << UInt64((wire[offset] &* 7 &+ wire[offset + 1]) % 64)
    }

    /// The value of the longest name that holds this one, is it itself or above it, and for which `isWanted`.
    func first(holding name: Name, where isWanted: (Value) -> Bool) -> Value? {
        let wire = name.wire
        var offset = 0
        while true {
            if beginnings[wire.count - offset] & Self.beginning(wire, offset) != 0,
                let those = values[NameKey.digest(wire, from: offset)],
                let found = those.first(where: { $0.name.wire.elementsEqual(wire[offset...]) }), isWanted(found.value)
            {
                return found.value
            }
            guard wire[offset] != 0 else { return nil }
            offset += Int(wire[offset]) + 1
        }
    }
}
