import Base

/// A chart of questions in steps of time as HTML: stacked columns by way, and the failed questions below the line. A
/// table has the same numbers, for readers who cannot see the chart.
struct Columns {
    let course: Course
    /// The text alternative of the chart.
    let title: String
    /// The labels below the chart from left to right, at equal distances.
    let axis: [String]
    /// The division of the table into rows.
    let rows: Rows

    /// The number of steps in a row, and the length of a row in a unit.
    typealias Rows = (steps: Int, length: Int, unit: String)

    /// The heights of the columns, of the gap and of the failures, in the units of the picture.
    private static let (height, gap, depth) = (100.0, 4.0, 16.0)
    /// The least height of a column above zero.
    private static let least = 1.5

    var html: HTML {
        let all = course.steps.reduce(Hour.Questions(), +)
        guard all.all > 0 || all.failed > 0 else { return "<p class=\"quiet\">No question yet.</p>" }
        return """
            <div class="chart">
            <p class="scale"><span>\(Overview.grouped(scale))</span><span>\(Overview.grouped(scale / 2))</span><span>0</span></p>
            \(picture(all))
            <p class="axis">\(axis.map { text -> HTML in "<span>\(text)</span>" })</p>
            </div>
            <ul class="parts">
            \(all.parts.filter { $0.count > 0 || $0.exposure == .clear }.map {
                Self.legend(Bars.name($0.exposure), $0.words, $0.count, of: all)
            })
            \(Self.legend("bad", "failed", all.failed, of: all))
            </ul>
            <p class="quiet">\(order)</p>
            \(table)
            """
    }

    /// The meaning of a colour, with its share and count.
    private static func legend(_ name: HTML, _ words: String, _ count: UInt64, of all: Hour.Questions) -> HTML {
        """
        <li class="\(name)"><b>\(all.share(of: count))</b> \(words) <span>\(Overview.grouped(count))</span></li>
        """
    }

    private var order: String {
        let minutes = course.width.seconds / 60
        let step = minutes < 60 ? "\(minutes) min" : "\(minutes / 60) h"
        let ways = Hour.Questions().parts.map(\.brief).joined(separator: ", ")
        return "A column is \(step), the last one not over yet. From the line up: \(ways). Below it: what share failed."
    }

    // MARK: The picture

    /// The number at the upper end. It is 2, 4 or 10 times a power of ten, so that its half is an integer.
    private var scale: UInt64 {
        let most = course.steps.map(\.all).max() ?? 0
        var power: UInt64 = 1
        while true {
            for digit: UInt64 in [2, 4, 10] where digit * power >= most { return digit * power }
            power *= 10
        }
    }

    private func picture(_ all: Hour.Questions) -> HTML {
        let count = course.width.most + 1
        let missing = max(0, count - course.steps.count)
        // The largest sum comes first: each area hides the part of the previous area below its own edge.
        let areas = all.parts.indices.reversed().filter { all.parts[$0].count > 0 }.map { index -> HTML in
            let tops = course.steps.map { top(of: $0, through: index) }
            let area = Self.outline(tops, from: missing, base: Self.height)
            return "<path class=\"\(Bars.name(all.parts[index].exposure))\" d=\"\(area)\"/>"
        }
        let line = Self.height + Self.gap
        let failed = all.failed > 0 ? HTML("<path class=\"bad\" d=\"\(below(from: missing))\"/>") : ""
        let grid: HTML = "<path class=\"grid\" d=\"M0 0H\(count)M0 50H\(count)M0 100H\(count)\"/>"
        return Bars.picture(
            "columns", count, Int(line + Self.depth), "\(title): \(all.words), \(Overview.grouped(all.failed)) failed",
            "\(grid)\(areas)\(failed)")
    }

    /// The upper edge of a part in one column, as a distance from the top.
    private func top(of step: Hour.Questions, through index: Int) -> Double {
        let height = step.parts[...index].reduce(0.0) { sum, part in
            part.count == 0 ? sum : sum + max(Self.least, Double(part.count) / Double(scale) * Self.height)
        }
        return max(0, Self.height - height)
    }

    private func below(from start: Int) -> HTML {
        let line = Self.height + Self.gap
        let ends = course.steps.map { step -> Double in
            guard step.failed > 0 else { return line }
            let share = min(1, Double(step.failed) / Double(max(step.all, step.failed)))
            return line + max(2 * Self.least, share * Self.depth)
        }
        return Self.outline(ends, from: start, base: line)
    }

    /// The area between a straight base and an edge of steps, each one unit wide.
    private static func outline(_ edge: [Double], from start: Int, base: Double) -> HTML {
        var path = "M\(start) \(Overview.decimal(base, 0))"
        var last: String?
        for (index, value) in edge.enumerated() {
            let text = Overview.decimal(value, 1)
            if text != last { path += "H\(start + index)V\(text)" }
            last = text
        }
        return "\(path)H\(start + edge.count)V\(Overview.decimal(base, 0))z"
    }

    // MARK: The table

    private var table: HTML {
        var lines: [HTML] = []
        var end = course.steps.count
        while end > 0 {
            // There is one step more than fills the rows, since the oldest step belongs to the previous row.
            let start = end - rows.steps > 1 ? end - rows.steps : 0
            let sum = course.steps[start..<end].reduce(Hour.Questions(), +)
            let age = lines.count * rows.length
            let numbers = [sum.all] + sum.parts.map(\.count) + [sum.failed, sum.billed]
            let cells = numbers.map { number -> HTML in "<td>\(Overview.grouped(number))</td>" }
            lines.append("<tr><th scope=\"row\">\(age)–\(age + rows.length) \(rows.unit)</th>\(cells)</tr>")
            end = start
        }
        let titles = ["ago", "questions"] + Hour.Questions().parts.map(\.brief) + ["failed", "names billed"]
        let heads = titles.map { words -> HTML in "<th scope=\"col\">\(words)</th>" }
        return """
            <details><summary>\(title) as a table</summary>
            <div class="wide" role="region" aria-label="\(title)" tabindex="0"><table>
            <thead><tr>\(heads)</tr></thead>
            <tbody>
            \(lines)
            </tbody>
            </table></div>
            </details>
            """
    }
}
