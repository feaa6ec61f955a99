import DNSWire

/// Values by name, found for every name at or under theirs.
///
/// No name is made and none hashed but where a name in the table is as long: most questions end at a few comparisons.
struct SuffixTable<Value: Sendable>: Sendable {
    private var values: [Int: [(name: Name, value: Value)]] = [:]
    /// Whether a name in the table is so many octets long.
    private var hasLength = [Bool](repeating: false, count: Name.maximumLength + 1)

    subscript(name: Name) -> Value? {
        get { values[NameKey.digest(name.wire, from: 0)]?.first { $0.name == name }?.value }
        set {
            let digest = NameKey.digest(name.wire, from: 0)
            values[digest, default: []].removeAll { $0.name == name }
            guard let newValue else { return }
            values[digest, default: []].append((name, newValue))
            hasLength[name.wire.count] = true
        }
    }

    /// The value of the longest name that holds this one, is it itself or above it, and for which `isWanted`.
    func first(holding name: Name, where isWanted: (Value) -> Bool) -> Value? {
        let wire = name.wire
        var offset = 0
        while true {
            if hasLength[wire.count - offset], let those = values[NameKey.digest(wire, from: offset)],
                let found = those.first(where: { $0.name.wire.elementsEqual(wire[offset...]) }), isWanted(found.value)
            {
                return found.value
            }
            guard wire[offset] != 0 else { return nil }
            offset += Int(wire[offset]) + 1
        }
    }
}
