import Base

/// The ways of questions, in words.
extension Hour.Questions {
    /// Questions by one way.
    struct Part {
        let exposure: Exposure
        let count: UInt64
        let words: String
        /// The same in a heading or a list.
        let brief: String
    }

    /// All of them, the most readable first.
    var parts: [Part] {
        [
            Part(exposure: .clear, count: clear, words: "left in the clear", brief: "in the clear"),
            Part(exposure: .encrypted, count: encrypted, words: "left encrypted", brief: "encrypted"),
            Part(
                exposure: .loopback, count: loopback, words: "went to a resolver on this machine",
                brief: "on this machine"),
            Part(exposure: .none, count: stayed, words: "stayed here", brief: "stayed here"),
        ]
    }

    /// The number of questions, and of those that left this machine by each way, in one sentence without its full stop.
    var words: String {
        guard all > 0 else { return "no question yet" }
        let shares = parts.filter { $0.count > 0 }.map { "\(share(of: $0.count)) \($0.words)" }
        return "\(Overview.counted(all, "question")), \(shares.joined(separator: ", "))"
    }

    /// A share of all, in per cent.
    func share(of count: UInt64) -> String { Overview.percent(all > 0 ? min(1, Double(count) / Double(all)) : 0) }
}
