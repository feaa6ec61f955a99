import Base

/// A bounded table of facts by key, each of which expires at a moment. When it is full, the fact that was inserted
/// first is removed, expired or not.
struct Remembered<Key: Hashable, Value> {
    private var values: [Key: (value: Value, until: Tick)] = [:]
    private var order: [Key] = []
    private var oldest = 0
    private let maximum: Int

    init(atMost maximum: Int) { self.maximum = maximum }

    var count: Int { values.count }

    func value(_ key: Key, at now: Tick) -> Value? { fact(key, at: now)?.value }

    func fact(_ key: Key, at now: Tick) -> (value: Value, until: Tick)? {
        guard let known = values[key], now < known.until else { return nil }
        return known
    }

    mutating func insert(_ key: Key, _ value: Value, until moment: Tick) {
        if values.updateValue((value, moment), forKey: key) != nil { return }
        if order.count < maximum {
            order.append(key)
        } else {
            values.removeValue(forKey: order[oldest])
            order[oldest] = key
            oldest = (oldest + 1) % maximum
        }
    }

    /// The keys that have not expired and whose values are meant. The call walks over all keys.
    func keys(at now: Tick, where isMeant: (Value) -> Bool = { _ in true }) -> [Key] {
        values.filter { now < $0.value.until && isMeant($0.value.value) }.map(\.key)
    }

    /// The first inserted key that has not expired and whose value is meant.
    func first(at now: Tick, where isMeant: (Value) -> Bool) -> Key? {
        for offset in order.indices {
            let key = order[(oldest + offset) % order.count]
            if let value = value(key, at: now), isMeant(value) { return key }
        }
        return nil
    }

    /// Walks over all keys, so it is for a command or a change of the rules, not for a query. The order of the keys stays.
    mutating func remove(where isMeant: (Key) -> Bool) {
        for key in values.keys.filter(isMeant) { values[key]?.until = Tick(nanoseconds: 0) }
    }

    mutating func removeAll() { self = Remembered(atMost: maximum) }
}
