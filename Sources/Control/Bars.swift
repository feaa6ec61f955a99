import Base

/// A chart of numbers as HTML: columns that fill the width of the page.
enum Bars {
    private static let height = 100.0

    /// - Parameter label: A text alternative for the chart.
    static func columns(_ counts: [UInt64], label: String) -> HTML {
        let most = Double(counts.max() ?? 0)
        var columns: [HTML] = []
        for (index, count) in counts.enumerated() where count > 0 {
            // Each column above zero is visible, however small.
            columns.append(column(index, max(2, Double(count) / most * height)))
        }
        return picture("bars", counts.count * 10, 100, label, "\(columns)")
    }

    /// A picture as wide as its part of the page.
    /// - Parameter label: A text alternative.
    static func picture(_ name: HTML, _ width: Int, _ height: Int, _ label: String, _ content: HTML) -> HTML {
        """
        <svg class="\(name)" viewBox="0 0 \(width) \(height)" preserveAspectRatio="none" role="img" \
        aria-label="\(label)">\(content)</svg>
        """
    }

    /// The mean round trip of each minute as columns, the newest minute on the right. Minutes with failures are marked,
    /// and a minute without any answer has its full height. Heights are by square root, so that one slow minute leaves
    /// the other minutes visible.
    static func roundTrips(_ minutes: [Hour.Answers], label: String) -> HTML {
        let most = minutes.compactMap(\.mean).max() ?? 0
        let count = Steps.Width.minute.most + 1
        var columns: [HTML] = []
        for (index, minute) in zip((count - minutes.count)..., minutes) {
            guard minute.mean != nil || minute.failures > 0 else { continue }
            // Failures must be visible beside answers, too.
            let least = minute.failures > 0 ? 30.0 : 4
            let tall = minute.mean.map { most > 0 ? max(least, ($0 / most).squareRoot() * height) : least } ?? height
            let mark: HTML = minute.failures > 0 ? " class=\"bad\"" : ""
            columns.append(column(index, tall, mark))
        }
        return picture("spark", count * 10, 100, label, "\(columns)")
    }

    /// - Parameter mark: An attribute with a space before it.
    private static func column(_ index: Int, _ tall: Double, _ mark: HTML = "") -> HTML {
        let (top, tall) = (Overview.decimal(height - tall, 1), Overview.decimal(tall, 1))
        return "<rect\(mark) x=\"\(index * 10 + 1)\" y=\"\(top)\" width=\"8\" height=\"\(tall)\"/>"
    }

    /// A bar of adjacent parts, each by the class of its exposure.
    static func stack(_ parts: [Hour.Questions.Part], label: String) -> HTML {
        let present = parts.filter { $0.count > 0 }
        let all = Double(present.reduce(0) { $0 + $1.count })
        // Each part above zero is visible, however small. All parts together fill the bar.
        let shares = present.map { max(0.01, Double($0.count) / all) }
        let whole = shares.reduce(0, +)
        var (left, pieces): (Double, [HTML]) = (0, [])
        for (part, share) in zip(present, shares) {
            let width = share / whole * 100
            pieces.append(
                """
                <rect class="\(name(part.exposure))" x="\(Overview.decimal(left, 2))" \
                width="\(Overview.decimal(width, 2))" height="4"/>
                """)
            left += width
        }
        return picture("stack", 100, 4, label, "\(pieces)")
    }

    /// The style sheet's class for an exposure.
    static func name(_ exposure: Exposure) -> HTML { exposure == .none ? "stayed" : "\(exposure.word)" }

    /// A bar that is filled to a share, 0…1.
    static func meter(_ share: Double, label: String) -> HTML {
        let width = Overview.decimal(min(max(share, 0), 1) * 100, 1)
        return picture(
            "meter", 100, 4, "\(label), \(Overview.percent(share))",
            "<rect class=\"empty\" width=\"100\" height=\"4\"/><rect width=\"\(width)\" height=\"4\"/>")
    }
}
