/// Looks for the fewest events that still make an episode fail (delta debugging).
struct Shortening {
    private let script: Script
    private var runs = 0
    /// Runs at most: each takes some milliseconds.
    private static let maximumRuns = 2000

    init(_ script: Script) { self.script = script }

    private func faults(_ places: [Int]) -> [String] {
        Episode.run(script, items: places.map { script.items[$0] })
    }

    func shortest() -> (places: [Int], faults: [String]) {
        var places = Array(script.items.indices)
        var (size, runs) = (max(1, places.count / 2), 0)
        while true {
            var isShorter = false
            var start = 0
            while start < places.count, runs < Self.maximumRuns {
                let rest = Array(places[..<start] + places[min(places.count, start + size)...])
                runs += 1
                if faults(rest).isEmpty {
                    start += size
                } else {
                    (places, isShorter) = (rest, true)
                }
            }
            if size == 1, !isShorter || runs >= Self.maximumRuns { break }
            size = max(1, size / 2)
        }
        return (places, faults(places))
    }
}
