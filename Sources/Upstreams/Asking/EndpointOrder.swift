import Base

/// Endpoints with alternating address families, beginning with the family of the first one; `first` comes before all.
func inTurn(_ endpoints: [Endpoint], first: Endpoint?) -> [Endpoint] {
    var order = endpoints.filter { $0 != first }
    if let first, order.count < endpoints.count { order.insert(first, at: 0) }
    let own = order.filter { $0.address.isIPv4 == order[0].address.isIPv4 }
    let other = order.filter { $0.address.isIPv4 != order[0].address.isIPv4 }
    return (0..<max(own.count, other.count)).flatMap { own.dropFirst($0).prefix(1) + other.dropFirst($0).prefix(1) }
}
