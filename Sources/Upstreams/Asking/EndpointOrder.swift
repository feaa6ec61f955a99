import Base

/// Endpoints with alternating address families, beginning with the family of the first one; `first` comes before all.
func inTurn(_ endpoints: [Endpoint], first: Endpoint?) -> [Endpoint] {
    guard endpoints.count > 1 else { return endpoints }
    let rest = endpoints.filter { $0 != first }
    let start = endpoints.contains { $0 == first } ? first : nil
    let leads = (start ?? rest.first)?.address.isIPv4 ?? true
    var own = rest.filter { $0.address.isIPv4 == leads }[...]
    var other = rest.filter { $0.address.isIPv4 != leads }[...]
    var all = start.map { [$0] } ?? []
    var isOwn = start == nil
    while !own.isEmpty || !other.isEmpty {
        if let next = isOwn ? own.popFirst() : other.popFirst() { all.append(next) }
        isOwn.toggle()
    }
    return all
}
