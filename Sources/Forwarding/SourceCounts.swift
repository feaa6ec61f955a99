/// How many of something each source has. Mostly one source has all, so that it is found without a hash (some 1,400
/// instructions a query).
struct SourceCounts {
    private var first: (source: Source, count: Int)?
    private var others: [Source: Int] = [:]

    subscript(source: Source) -> Int {
        if let first, first.source == source { return first.count }
        return others[source] ?? 0
    }

    /// - Parameter change: 1 or -1; what a source does not have is not taken from it.
    mutating func add(_ change: Int, to source: Source) {
        if first == nil || first?.count == 0, others[source] == nil { first = (source, 0) }
        if let count = first?.count, first?.source == source {
            first?.count = max(0, count + change)
            return
        }
        let count = (others[source] ?? 0) + change
        others[source] = count > 0 ? count : nil
    }
}
