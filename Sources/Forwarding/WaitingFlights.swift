/// Flights that wait for a server with room, in the order of arrival for each source. The sources are served in turn,
/// so that a source with many questions waits only for its own questions.
struct WaitingFlights {
    private var flights: [Source: [MessageStep]] = [:]
    /// The sources that wait, the next source first.
    private(set) var sources: [Source] = []
    private(set) var count = 0

    var isEmpty: Bool { sources.isEmpty }

    /// Whether flights of another source wait.
    func hasOthers(than source: Source) -> Bool { sources.count > 1 || sources.first.map { $0 != source } ?? false }

    mutating func append(_ flight: MessageStep, of source: Source) {
        if flights[source] == nil { sources.append(source) }
        flights[source, default: []].append(flight)
        count += 1
    }

    /// Removes all waiting flights of a source, to inspect them and put them back.
    mutating func take(of source: Source) -> [MessageStep] {
        guard let taken = flights.removeValue(forKey: source) else { return [] }
        sources.removeAll { $0 == source }
        count -= taken.count
        return taken
    }

    /// Puts removed flights back, before the flights that have come since.
    /// - Parameter isNext: Whether the source was not served, and has the next turn.
    mutating func putBack(_ taken: [MessageStep], of source: Source, isNext: Bool) {
        guard !taken.isEmpty else { return }
        if flights[source] == nil { sources.insert(source, at: isNext ? 0 : sources.count) }
        flights[source] = taken + (flights[source] ?? [])
        count += taken.count
    }

    /// Removes the flights that no longer wait.
    mutating func compact() {
        for source in sources { putBack(take(of: source).filter(\.isWaiting), of: source, isNext: false) }
    }
}
