public import DNSWire

/// `[cache] rank`: the names whose addresses are tried, and the names under them, each with its port. The list is a
/// reference, so that the copy of a policy is cheap.
public final class RankedNames: Sendable {
    private let table: DomainTable<UInt16>

    /// Nil if there are no names.
    public init?(_ ports: [(name: Name, port: UInt16)]) {
        guard !ports.isEmpty else { return nil }
        table = DomainTable(
            subtrees: Dictionary(grouping: ports, by: \.port).map { port, ports in (ports.map(\.name), port) })
    }

    /// The port of the longest listed name that is this name or above it; nil if there is none.
    func port(of name: Name) -> UInt16? { table.longest(name)?.value }
}
