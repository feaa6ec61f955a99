import Base
import Counters
import Forwarding

/// A count, or several, that only grow, so that the difference of two is what came between them.
protocol Growing: Sendable {
    init()
    /// What came since `before`; 0 for a count that began again.
    func since(_ before: Self) -> Self
    static func + (a: Self, b: Self) -> Self
}

/// How much totals grew in each of the last sixty minutes.
struct Growth<Total: Growing>: Sendable {
    /// Full minutes, the newest last.
    private(set) var minutes: [Total] = []
    private var before: Total

    /// How many minutes are kept.
    static var count: Int { 60 }

    init(from total: Total) { before = total }

    /// - Parameter passed: The minutes that have passed, at least 1. More than one: the machine or the daemon slept, and
    ///   all growth is attributed to the first of them.
    mutating func pass(_ passed: Int, _ total: Total) {
        minutes.append(thisMinute(total))
        for _ in 1..<max(1, min(passed, Self.count)) { minutes.append(Total()) }
        minutes.removeFirst(max(0, minutes.count - Self.count))
        before = total
    }

    /// The growth since the last full minute.
    func thisMinute(_ total: Total) -> Total { total.since(before) }

    /// The full minutes and the one under way.
    func hour(_ total: Total) -> [Total] { minutes + [thisMinute(total)] }
}

/// What happened in each of the last sixty minutes, from the totals of an observation once a minute: nothing that answers
/// questions has to count for it.
struct History {
    /// When the current minute began, in nanoseconds.
    private var begun: UInt64
    /// Minutes that are over and whose totals have not come yet.
    private var passed = 0
    private var questions = Growth<Hour.Questions>(from: Hour.Questions())
    private var servers: [Member: Growth<Hour.Answers>] = [:]
    /// Names sent to accounts.
    private var names: [GroupID: Growth<UInt64>] = [:]

    /// The most servers, and the most accounts, whose minutes are kept, some 1.5 KB each.
    static let maximumServers = 256
    /// In nanoseconds.
    static let minute: UInt64 = 60_000_000_000

    init(at now: UInt64) { begun = now }

    /// When ``isOver(at:)`` is to be asked next.
    var next: UInt64 { begun + Self.minute }

    /// Whether a minute is over, so that ``take(_:)`` is to be called with an observation; true once for each.
    mutating func isOver(at now: UInt64) -> Bool {
        guard now >= next else { return false }
        let minutes = (now - begun) / Self.minute
        begun += minutes * Self.minute
        passed = min(passed + Int(min(minutes, UInt64(Int32.max))), Growth<UInt64>.count)
        return true
    }

    /// Ends the minutes that are over.
    mutating func take(_ observation: Observation) {
        guard passed > 0 else { return }
        questions.pass(passed, observation.questionTotals)
        Self.pass(passed, &servers, observation.answerTotals, atMost: Self.maximumServers)
        Self.pass(passed, &names, observation.nameTotals, atMost: Self.maximumServers)
        passed = 0
    }

    /// Ends minutes of each key that there still is, and begins with those that are new.
    private static func pass<Key, Total>(
        _ passed: Int, _ kept: inout [Key: Growth<Total>], _ totals: [Key: Total], atMost most: Int
    ) {
        var new: [Key: Growth<Total>] = [:]
        var room = most - totals.keys.count { kept[$0] != nil }
        for (key, total) in totals {
            if kept[key] == nil {
                guard room > 0 else { continue }
                room -= 1
            }
            // What a new key has counted so far came in the minute that is over.
            var growth = kept[key] ?? Growth(from: Total())
            growth.pass(passed, total)
            new[key] = growth
        }
        kept = new
    }

    /// The last hour, up to this observation.
    func hour(_ observation: Observation) -> Hour {
        var hour = Hour(minutes: questions.hour(observation.questionTotals))
        for (member, total) in observation.answerTotals {
            hour.answers[member] = (servers[member] ?? Growth(from: Hour.Answers())).hour(total)
        }
        for (group, total) in observation.nameTotals {
            hour.names[group] = (names[group] ?? Growth(from: 0)).hour(total).reduce(0, +)
        }
        return hour
    }
}

extension UInt64: Growing {
    func since(_ before: UInt64) -> UInt64 { self > before ? self - before : 0 }
}

/// A server as a member of one group: another group that has the same server asks it in its own way.
struct Member: Hashable, Sendable {
    let group: GroupID
    let server: Server
}

/// The last sixty full minutes and the one under way, of a daemon that has run for so long.
struct Hour: Sendable {
    /// The newest last.
    var minutes: [Questions]
    var answers: [Member: [Answers]] = [:]
    /// Names sent to an account in the whole hour.
    var names: [GroupID: UInt64] = [:]

    /// Questions, and those of them that were sent to a server: see ``Counters/sentEncrypted``. Lookups of the daemon's
    /// own count among the sent ones alone.
    struct Questions: Growing, Equatable {
        var asked: UInt64 = 0
        var encrypted: UInt64 = 0
        var loopback: UInt64 = 0
        var clear: UInt64 = 0

        func since(_ before: Questions) -> Questions {
            Questions(
                asked: asked.since(before.asked), encrypted: encrypted.since(before.encrypted),
                loopback: loopback.since(before.loopback), clear: clear.since(before.clear))
        }

        static func + (a: Questions, b: Questions) -> Questions {
            Questions(
                asked: a.asked + b.asked, encrypted: a.encrypted + b.encrypted, loopback: a.loopback + b.loopback,
                clear: a.clear + b.clear)
        }

        var sent: UInt64 { encrypted + loopback + clear }
        /// The whole of which shares are given: more than were asked while the daemon looks up names by itself.
        var all: UInt64 { max(asked, sent) }
        /// Questions that were answered without asking a server.
        var stayed: UInt64 { all - sent }
        /// The share that left in the clear, 0…1; nil: there were none.
        var clearShare: Double? { all > 0 ? Double(clear) / Double(all) : nil }
    }

    /// A server's answers and failures.
    struct Answers: Growing, Equatable {
        var answers: UInt64 = 0
        var failures: UInt64 = 0
        /// The sum of the answers' times.
        var microseconds: UInt64 = 0

        func since(_ before: Answers) -> Answers {
            Answers(
                answers: answers.since(before.answers), failures: failures.since(before.failures),
                microseconds: microseconds.since(before.microseconds))
        }

        static func + (a: Answers, b: Answers) -> Answers {
            Answers(
                answers: a.answers + b.answers, failures: a.failures + b.failures,
                microseconds: a.microseconds + b.microseconds)
        }

        /// The mean time of an answer in milliseconds; nil: there was none.
        var mean: Double? { answers > 0 ? Double(microseconds) / Double(answers) / 1000 : nil }
    }

    var questions: Questions { minutes.reduce(Questions(), +) }
}

/// The totals that an hour is made of.
extension Observation {
    fileprivate var questionTotals: Hour.Questions {
        Hour.Questions(
            asked: asked, encrypted: counters.sentEncrypted, loopback: counters.sentToLoopback,
            clear: counters.sentInClear)
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

    fileprivate var nameTotals: [GroupID: UInt64] {
        var totals: [GroupID: UInt64] = [:]
        for group in groups where group.carriesAddresses { totals[group.id] = group.counters.names }
        return totals
    }
}
