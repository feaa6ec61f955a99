/// A chart of numbers as HTML: columns that fill the width of the page.
struct Bars {
    private let counts: [UInt64]
    private let isRooted: Bool
    private let label: String

    /// - Parameters:
    ///   - isRooted: heights are scaled by square root, so that small numbers stay visible beside large ones.
    ///   - label: a text alternative for the chart.
    init(_ counts: [UInt64], isRooted: Bool, label: String) {
        (self.counts, self.isRooted, self.label) = (counts, isRooted, label)
    }

    private static let height = 100.0

    var svg: String {
        let most = Double(counts.max() ?? 0)
        var columns = ""
        for (place, count) in counts.enumerated() where count > 0 {
            let share = Double(count) / most
            // Every column above zero is visible, however small.
            let height = max(2, (isRooted ? share.squareRoot() : share) * Self.height)
            let top = Overview.decimal(Self.height - height, 1)
            columns +=
                "<rect x=\"\(place * 10 + 1)\" y=\"\(top)\" width=\"8\" height=\"\(Overview.decimal(height, 1))\"/>"
        }
        return """
            <svg class="bars" viewBox="0 0 \(counts.count * 10) 100" preserveAspectRatio="none" role="img" \
            aria-label="\(escaped(label))">\(columns)</svg>
            """
    }

    /// A bar that is filled to a share, 0…1.
    static func meter(_ share: Double, label: String) -> String {
        let width = Overview.decimal(min(max(share, 0), 1) * 100, 1)
        return """
            <svg class="meter" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" \
            aria-label="\(escaped(label)), \(Overview.percent(share))">\
            <rect class="empty" width="100" height="4"/><rect width="\(width)" height="4"/></svg>
            """
    }
}
