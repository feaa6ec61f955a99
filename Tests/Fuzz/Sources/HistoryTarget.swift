import Base
import DNSCache

@testable import Control

extension Target {
    /// The file with the past: as it is, or with its head and checksum made right.
    static let history = Target(name: "history") { bytes in
        let octets = choice(bytes, of: 4) == 0 ? bytes : repaired(bytes)
        guard let record = HistoryRecord(octets) else { return }
        check(record.octets == octets, "written anew it is another")
        for (wall, tick, boot) in [(then.wall, then.tick + 1000, then.boot), (0, 5, 78), (.max, 5, 78)] {
            let moment = DNSCache.Moment(wall: wall, tick: tick, boot: boot)
            let past = record.history(at: 1_000_000_000, moment).past(now)
            check(past.map(\.width) == History.widths, "other widths")
            for course in past {
                check(1...course.width.most + 1 ~= course.steps.count, "\(course.steps.count) steps")
                check(course.elapsed < course.width.seconds, "a step of \(course.elapsed) s")
                let chart = Columns(course: course, title: "", axis: [], rows: (steps: 12, length: 1, unit: "h"))
                check(!chart.html.text.isEmpty, "no chart")
            }
        }
    }
}

private let then = DNSCache.Moment(wall: 1_700_000_000, tick: 4900, boot: 77)
private let now = Observation(DNSCache(bytes: 1 << 20, seed: (1, 2)).statistics)

private func repaired(_ bytes: [UInt8]) -> [UInt8] {
    let head = HistoryRecord(written: then, []).octets.dropLast(HistoryRecord.number)
    guard bytes.count >= head.count + HistoryRecord.number else { return bytes }
    let body = head + bytes.dropFirst(head.count).dropLast(HistoryRecord.number)
    let checksum = HistoryRecord.checksum(Array(body)[...])
    return body + (0..<8).map { UInt8(truncatingIfNeeded: checksum >> UInt64(56 - 8 * $0)) }
}
