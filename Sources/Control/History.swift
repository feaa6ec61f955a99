import Base
import Counters
import DNSWire
import Forwarding

/// Questions in steps of time, the newest step last. The last step is not over yet.
struct Course: Sendable, Equatable {
    let width: Steps.Width
    let steps: [Hour.Questions]
    /// Seconds that the last step has lasted.
    let elapsed: UInt64

    /// The time since the start of the first step, in seconds.
    var age: UInt64 { elapsed + UInt64(max(0, steps.count - 1)) * width.seconds }
}

/// The events of each of the last sixty minutes, and the questions of the last day and month, from the totals of an
/// observation once a minute: the queues that answer questions need no counting for it.
struct History {
    /// The minutes, then the longer past, which outlives a restart.
    private var courses: [(steps: Steps, questions: Growth<Hour.Questions>)]
    private var servers: [Member: Growth<Hour.Answers>] = [:]
    /// Names sent to accounts.
    private var names: [GroupID: Growth<UInt64>] = [:]

    /// The most servers, and the most accounts, whose minutes are stored, some 1.5 KB each.
    static let maximumServers = 256
    /// The steps of the longer past.
    static let widths = [Steps.Width.fiveMinutes, .hour]
    /// The seconds after which nothing of the stored past is left. A longer absence has the same effect.
    private static let longest: UInt64 = 366 * 86_400

    /// - Parameters:
    ///   - kept: The stored past of an earlier run, for each of ``widths``; empty without an earlier run.
    ///   - away: The seconds since the earlier run.
    init(at now: UInt64, _ kept: [Course] = [], away: UInt64 = 0) {
        courses = ([.minute] + Self.widths).map { (Steps($0, at: now), Growth(most: $0.most)) }
        for (index, course) in zip(1..., kept) {
            let width = courses[index].steps.width
            let (passed, elapsed) = (min(away, Self.longest) + course.elapsed)
                .quotientAndRemainder(dividingBy: width.seconds)
            courses[index].steps = Steps(width, at: now, elapsed: elapsed)
            guard passed <= UInt64(width.most) else { continue }
            courses[index].questions = Growth(course.steps, most: width.most)
            if passed > 0 { courses[index].questions.pass(Int(passed), Hour.Questions()) }
        }
    }

    /// Takes the longer past of another history, which counts from the same totals.
    mutating func takeOver(_ other: History) { courses[1...] = other.courses[1...] }

    /// The time at which to call ``isOver(at:)`` next.
    var next: UInt64 { courses.reduce(.max) { min($0, $1.steps.next) } }

    /// Whether a step is over, so that ``take(_:)`` must be called with an observation. True once for each step.
    mutating func isOver(at now: UInt64) -> Bool {
        var isOver = false
        for index in courses.indices where courses[index].steps.isOver(at: now) { isOver = true }
        return isOver
    }

    /// Ends the steps that are over.
    /// - Returns: Whether the longer past has grown and must be stored.
    mutating func take(_ observation: Observation) -> Bool {
        var hasGrown = false
        for index in courses.indices {
            let passed = courses[index].steps.take()
            guard passed > 0 else { continue }
            courses[index].questions.pass(passed, observation.questionTotals)
            if index > 0 {
                hasGrown = true
            } else {
                Self.pass(passed, &servers, observation.answerTotals)
                Self.pass(passed, &names, observation.namesSent)
            }
        }
        return hasGrown
    }

    /// Ends the minutes of each existing key, and begins the minutes of new keys.
    private static func pass<Key, Total>(
        _ passed: Int, _ kept: inout [Key: Growth<Total>], _ totals: [Key: Total]
    ) {
        var new: [Key: Growth<Total>] = [:]
        var room = maximumServers - totals.keys.count { kept[$0] != nil }
        for (key, total) in totals {
            if kept[key] == nil {
                guard room > 0 else { continue }
                room -= 1
            }
            // The counts of a new key belong to the minute that is over.
            new[key] = kept[key] ?? Growth()
            new[key]?.pass(passed, total)
        }
        kept = new
    }

    /// The last hour, up to this observation.
    func hour(_ observation: Observation) -> Hour {
        var hour = Hour(minutes: courses[0].questions.all(observation.questionTotals))
        for (member, total) in observation.answerTotals {
            hour.answers[member] = servers[member, default: Growth()].all(total)
        }
        for (group, total) in observation.namesSent {
            hour.names[group] = names[group, default: Growth()].all(total).reduce(0, +)
        }
        return hour
    }

    /// The last 24 hours and the last 30 days, up to this observation.
    func past(_ observation: Observation) -> [Course] {
        courses.dropFirst().map { steps, questions in
            Course(
                width: steps.width, steps: questions.all(observation.questionTotals),
                elapsed: steps.elapsed(at: observation.at.nanoseconds))
        }
    }
}

/// A server as a member of one group. Another group with the same server asks the server in its own way.
struct Member: Hashable, Sendable {
    let group: GroupID
    let server: Server
}

/// The last sixty full minutes and the present one, if the daemon has run so long.
struct Hour: Sendable {
    /// The questions of each minute, the newest minute last.
    var minutes: [Questions]
    var answers: [Member: [Answers]] = [:]
    /// Names sent to an account in the whole hour.
    var names: [GroupID: UInt64] = [:]

    /// Questions, and the questions among them that were sent to a server: see ``Counters/sentEncrypted``. The daemon's
    /// own lookups count only as sent.
    struct Questions: Growing, Equatable {
        var asked: UInt64 = 0
        var encrypted: UInt64 = 0
        var loopback: UInt64 = 0
        var clear: UInt64 = 0
        /// Questions to which clients got SERVFAIL, sent or not.
        var failed: UInt64 = 0
        /// Names sent to accounts, counted each time. No more names can be billed.
        var billed: UInt64 = 0

        /// The key paths of all counts.
        static var counts: [WritableKeyPath<Questions, UInt64>] {
            [\.asked, \.encrypted, \.loopback, \.clear, \.failed, \.billed]
        }

        var sent: UInt64 { encrypted + loopback + clear }
        /// The whole for shares: more than the clients' questions while the daemon makes lookups of its own.
        var all: UInt64 { max(asked, sent) }
        /// Questions that were answered without a server.
        var stayed: UInt64 { all - sent }
        /// The share of questions that left in the clear, 0…1; nil: there was no question.
        var clearShare: Double? { all > 0 ? Double(clear) / Double(all) : nil }
    }

    /// A server's answers and failures.
    struct Answers: Growing, Equatable {
        var answers: UInt64 = 0
        var failures: UInt64 = 0
        /// The sum of the answers' times.
        var microseconds: UInt64 = 0

        static var counts: [WritableKeyPath<Answers, UInt64>] { [\.answers, \.failures, \.microseconds] }

        /// The mean time of an answer in milliseconds; nil: there was no answer.
        var mean: Double? { answers > 0 ? Double(microseconds) / Double(answers) / 1000 : nil }
    }

    var questions: Questions { minutes.reduce(Questions(), +) }
}

/// The totals for an hour.
extension Observation {
    fileprivate var questionTotals: Hour.Questions {
        Hour.Questions(
            asked: counts.asked, encrypted: counters.sentEncrypted, loopback: counters.sentToLoopback,
            clear: counters.sentInClear, failed: counts.responses[ResponseKind.index(.servFail)],
            billed: namesSent.values.reduce(0, +))
    }

    fileprivate var answerTotals: [Member: Hour.Answers] {
        var totals: [Member: Hour.Answers] = [:]
        for group in groups {
            for server in group.servers {
                let figures = upstreams[group.id]?[server.server]
                let durations = figures?.durations.values.reduce(Durations(), +) ?? Durations()
                totals[Member(group: group.id, server: server.server)] = Hour.Answers(
                    answers: durations.total, failures: server.health.failures,
                    microseconds: durations.nanoseconds / 1000)
            }
        }
        return totals
    }
}

/// One or more counts that only grow, so that the difference of two totals is the increase between them.
protocol Growing: Sendable {
    init()
    /// The key paths of all counts.
    static var counts: [WritableKeyPath<Self, UInt64>] { get }
}

extension Growing {
    /// The increase since `before`; 0 for a count that began again.
    func since(_ before: Self) -> Self { combined(before) { $0 > $1 ? $0 - $1 : 0 } }
    static func + (a: Self, b: Self) -> Self { a.combined(b, by: +) }

    private func combined(_ other: Self, by operation: (UInt64, UInt64) -> UInt64) -> Self {
        Self.counts.reduce(into: self) { $0[keyPath: $1] = operation($0[keyPath: $1], other[keyPath: $1]) }
    }
}

extension UInt64: Growing {
    static var counts: [WritableKeyPath<UInt64, UInt64>] { [\.self] }
}

/// The increase of totals in each of the latest steps of one width.
struct Growth<Total: Growing>: Sendable {
    /// The increase in each step, the newest last. The newest step is not over yet.
    private var steps: [Total]
    /// The totals when growth was added last.
    private var before = Total()
    private let most: Int

    /// - Parameters:
    ///   - steps: The steps to continue, with totals that begin at 0.
    ///   - most: The most full steps that are stored.
    init(_ steps: [Total] = [Total()], most: Int = Steps.Width.minute.most) {
        (self.steps, self.most) = (steps, most)
    }

    /// - Parameter passed: The steps that have passed, at least 1. After more than one step, the machine or the daemon
    ///   has slept, and all growth is attributed to the first of these steps.
    mutating func pass(_ passed: Int, _ total: Total) {
        (steps, before) = (all(total), total)
        steps += repeatElement(Total(), count: min(passed, most))
        steps.removeFirst(max(0, steps.count - most - 1))
    }

    /// The full steps and the present step.
    func all(_ total: Total) -> [Total] {
        var steps = steps
        steps.append(steps.removeLast() + total.since(before))
        return steps
    }
}

/// Steps of time of one width, by a clock that is never set, so that changes of the wall clock have no effect.
struct Steps: Sendable {
    /// The length of a step, and the most steps that are stored.
    let width: Width
    /// The end of the present step, in nanoseconds.
    private(set) var next: UInt64
    /// Steps that are over and whose totals have not come yet.
    private(set) var passed = 0

    struct Width: Sendable, Equatable {
        let seconds: UInt64
        let most: Int

        static let minute = Width(seconds: 60, most: 60)
        /// 288 steps, which are 24 hours.
        static let fiveMinutes = Width(seconds: 300, most: 288)
        /// 720 steps, which are 30 days.
        static let hour = Width(seconds: 3600, most: 720)

        var nanoseconds: UInt64 { seconds * 1_000_000_000 }
    }

    /// - Parameter elapsed: Seconds that the present step has lasted, less than its width.
    init(_ width: Width, at now: UInt64, elapsed: UInt64 = 0) {
        (self.width, next) = (width, now + (width.seconds - elapsed) * 1_000_000_000)
    }

    /// Whether a step is over. True once for each step.
    mutating func isOver(at now: UInt64) -> Bool {
        guard now >= next else { return false }
        let steps = (now - next) / width.nanoseconds + 1
        next += steps * width.nanoseconds
        passed = min(passed + Int(min(steps, UInt64(Int32.max))), width.most)
        return true
    }

    /// The number of steps that are over and whose totals come now.
    mutating func take() -> Int { exchange(&passed, with: 0) }

    /// Seconds that the present step has lasted, less than its width.
    func elapsed(at now: UInt64) -> UInt64 {
        let end = now + width.nanoseconds
        return end > next ? min((end - next) / 1_000_000_000, width.seconds - 1) : 0
    }
}

/// The ways of questions, in words.
extension Hour.Questions {
    /// Questions by one way, in words, and in the words for a heading or a list.
    typealias Part = (exposure: Exposure, count: UInt64, words: String, brief: String)

    /// All parts, the least protected first.
    var parts: [Part] {
        [
            (.clear, clear, "left in the clear", "in the clear"),
            (.encrypted, encrypted, "left encrypted", "encrypted"),
            (.loopback, loopback, "went to a resolver on this machine", "on this machine"),
            (.none, stayed, "stayed here", "stayed here"),
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
