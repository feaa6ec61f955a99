import DNSCache
import DNSWire

/// Names that HTTPDNS lately had no record of, each until its moment. Past its bound the oldest is forgotten: it is asked
/// about once more than needed.
struct RecentNames {
    private var until: [Name: Tick] = [:]
    private var order: [Name] = []
    private var oldest = 0

    static let maximum = 20_000

    func contains(_ name: Name, at now: Tick) -> Bool {
        until[name].map { now < $0 } ?? false
    }

    mutating func insert(_ name: Name, until moment: Tick) {
        if until.updateValue(moment, forKey: name) != nil { return }
        if order.count < Self.maximum {
            order.append(name)
        } else {
            until.removeValue(forKey: order[oldest])
            order[oldest] = name
            oldest = (oldest + 1) % Self.maximum
        }
    }
}
