/// Looks for the fewest events that still make an episode fail (delta debugging).
struct Shortening {
    private let script: Script
    /// Runs the episode with some of its events, and returns the faults.
    private let run: ([Script.Item]) -> [String]
    /// The kind of the first fault: the shorter script must have the same.
    private let kind: String
    /// The most runs: each takes some milliseconds.
    private static let maximumRuns = 2000

    init(_ script: Script, _ faults: [String], run: @escaping ([Script.Item]) -> [String]) {
        (self.script, self.run, kind) = (script, run, Self.kind(faults))
    }

    /// The first fault without its moments, names and numbers.
    private static func kind(_ faults: [String]) -> String {
        let words = (faults.first ?? "").split(separator: " ").filter { word in word.allSatisfy { $0.isLetter } }
        return words.joined(separator: " ")
    }

    private func faults(_ indices: [Int]) -> [String] {
        let faults = run(indices.map { script.items[$0] })
        return Self.kind(faults) == kind ? faults : []
    }

    func shortest() -> (indices: [Int], faults: [String]) {
        var indices = Array(script.items.indices)
        var (size, runs) = (max(1, indices.count / 2), 0)
        while true {
            var isShorter = false
            var start = 0
            while start < indices.count, runs < Self.maximumRuns {
                let rest = Array(indices[..<start] + indices[min(indices.count, start + size)...])
                runs += 1
                if faults(rest).isEmpty {
                    start += size
                } else {
                    (indices, isShorter) = (rest, true)
                }
            }
            if size == 1, !isShorter || runs >= Self.maximumRuns { break }
            size = max(1, size / 2)
        }
        return (indices, faults(indices))
    }
}
