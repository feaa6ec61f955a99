import Base
package import DNSCache
package import Log
package import Transport

/// The file that stores the longer past over a restart. It has only numbers, and no name.
package final class HistoryFile: @unchecked Sendable {
    // Unchecked: all mutable state is used only on the loop.
    private var file: KeptFile
    private let loop: EventLoop
    private let moment: @Sendable () -> DNSCache.Moment
    private let report: Report

    /// - Parameters:
    ///   - cacheFile: `cache.file`, whose folder the history's file shares.
    ///   - loop: The loop that writes the file, so that no other queue waits for a disk.
    ///   - moment: Returns the time; called on any thread.
    package init(
        beside cacheFile: String, on loop: EventLoop, moment: @escaping @Sendable () -> DNSCache.Moment, report: Report
    ) {
        (file, self.loop, self.moment, self.report) = (KeptFile(cacheFile + ".history"), loop, moment, report)
    }

    /// Reads the file on the loop that writes it.
    /// - Parameter done: Called on that loop.
    func read(_ done: @escaping @Sendable (History) -> Void) {
        loop.submit { [self] in done(read(at: Clock.now())) }
    }

    /// The continuation of the file's past at a moment of ``Clock``. A damaged file is left alone until the next file
    /// replaces it. A missing file equals an empty file.
    func read(at now: UInt64) -> History {
        do throws(SystemError) {
            let octets = try SystemFile.read(file.path, limit: HistoryRecord.mostOctets)
            if let record = HistoryRecord(octets) { return record.history(at: now, moment()) }
            report.historyFails("the history is not taken over: \(HistoryRecord.fault(of: octets))")
        } catch {
            if !error.isNotFound { report.historyFails("the history is not taken over: \(error)") }
        }
        return History(at: now)
    }

    /// Writes the past. May be called from any thread.
    func save(_ past: [Course]) {
        let octets = HistoryRecord(written: moment(), past).octets
        loop.submit { [self] in
            file.write(octets) { report.historyFails("the history is not kept over a restart: \($0)") }
        }
    }
}

extension Report {
    fileprivate func historyFails(_ words: String) { say(.warning, .cacheFileFails, about: "history", words) }
}

/// The contents of the file: network byte order, no gaps.
///
/// - Magic number, version, time of writing (``DNSCache/Moment``).
/// - For each of ``History/widths``: the seconds that the last step had lasted, the number of steps, and for each the
///   counts of ``Hour/Questions``, the newest last; version 1 had no ``Hour/Questions/billed``.
/// - A checksum over all these fields. It does not prevent forgery: numbers are checked one by one.
struct HistoryRecord {
    let written: DNSCache.Moment
    let past: [Course]

    private static let magic = Array("httpdnsd-history".utf8)
    private static let version: UInt32 = 2
    private static let counts = Hour.Questions.counts.count
    static let number = 8
    /// The most octets that a record can have.
    static let mostOctets =
        magic.count + 32 + number
        + History.widths.reduce(0) { $0 + 8 + ($1.most + 1) * counts * number }
    /// A number greater than any count of a step, so that no sum of counts overflows.
    private static let mostCounted: UInt64 = 1 << 48

    init(written: DNSCache.Moment, _ past: [Course]) { (self.written, self.past) = (written, past) }

    /// - Returns: Nil if ``octets`` cannot have written these octets.
    init?(_ octets: [UInt8]) {
        var reader = OctetReader(octets)
        guard reader.take(Self.magic.count)?.elementsEqual(Self.magic) ?? false,
            let version = reader.integer(4), (1...UInt64(Self.version)).contains(version),
            let tick = reader.integer(4), let wall = reader.integer(8), let high = reader.integer(8),
            let low = reader.integer(8)
        else { return nil }
        let boot = UInt128(high) << 64 | UInt128(low)
        let counts = Hour.Questions.counts.dropLast(version == 1 ? 1 : 0)
        written = DNSCache.Moment(wall: wall, tick: UInt32(tick), boot: boot == 0 ? nil : boot)
        var past: [Course] = []
        for width in History.widths {
            guard let elapsed = reader.integer(4), elapsed < width.seconds, let count = reader.integer(4),
                count > 0, count <= UInt64(width.most) + 1
            else { return nil }
            var steps: [Hour.Questions] = []
            for _ in 0..<count {
                var questions = Hour.Questions()
                for count in counts {
                    guard let number = reader.integer(Self.number), number <= Self.mostCounted else { return nil }
                    questions[keyPath: count] = number
                }
                steps.append(questions)
            }
            past.append(Course(width: width, steps: steps, elapsed: elapsed))
        }
        self.past = past
        let checked = octets.count - reader.rest.count
        guard reader.integer(Self.number) == Self.checksum(octets[..<checked]), reader.rest.isEmpty else { return nil }
    }

    /// The reason for which octets are not a history that this version can read.
    static func fault(of octets: [UInt8]) -> String {
        var reader = OctetReader(octets)
        guard reader.take(magic.count)?.elementsEqual(magic) ?? false, let number = reader.integer(4),
            number != UInt64(version)
        else { return "it is damaged, or something else" }
        return "it is of version \(number), not \(version)"
    }

    var octets: [UInt8] {
        var octets = Self.magic
        octets.append(UInt64(Self.version), octets: 4)
        octets.append(UInt64(written.tick), octets: 4)
        octets.append(written.wall, octets: 8)
        let boot = written.boot ?? 0
        octets.append(UInt64(truncatingIfNeeded: boot >> 64), octets: 8)
        octets.append(UInt64(truncatingIfNeeded: boot), octets: 8)
        for course in past {
            octets.append(course.elapsed, octets: 4)
            octets.append(UInt64(course.steps.count), octets: 4)
            for step in course.steps {
                for count in Hour.Questions.counts {
                    octets.append(min(step[keyPath: count], Self.mostCounted), octets: Self.number)
                }
            }
        }
        octets.append(Self.checksum(octets[...]), octets: Self.number)
        return octets
    }

    /// The history that continues this record. If the elapsed time is unknown, as it may be over a restart of the
    /// machine, the history takes the difference of the wall clocks, and 0 if the clock went back.
    /// - Parameter now: The present time on the clock of ``Clock``.
    func history(at now: UInt64, _ moment: DNSCache.Moment) -> History {
        History(at: now, past, away: moment.elapsed(since: written) ?? moment.wall - min(moment.wall, written.wall))
    }

    static func checksum(_ octets: ArraySlice<UInt8>) -> UInt64 {
        var sum = FNV()
        sum.add(Array(octets))
        return sum.value
    }
}
