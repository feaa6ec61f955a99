import Base
import Forwarding

/// Holds back replies to unproven sources, if many have waited long and would get theirs at the same moment: an
/// attacker who asks slow questions with a forged source would otherwise hit that source with all replies at once
/// (DNSBomb, CVE-2024-33655).
struct PacedReplies<Reply> {
    /// Replies to questions that have waited less, in nanoseconds, leave at once.
    static var shortestWait: UInt64 { 100_000_000 }
    /// Nanoseconds of an interval; a source gets at most ``Shares/lateReplies`` in each.
    static var interval: UInt64 { 10_000_000 }
    /// The most replies that are held back; further replies leave at once.
    static var maximum: Int { 8192 }

    private var held: [(reply: Reply, source: Source)] = []
    /// The sources of held replies: further replies to them wait behind these.
    private var waiting: Set<Source> = []
    /// The number of the counted interval.
    private var current: UInt64 = 0
    private var counts: [Source: Int] = [:]
    /// When ``release(at:)`` must be called next; nil if no reply is held back.
    private(set) var nextDeadline: Tick?

    var isEmpty: Bool { held.isEmpty }

    /// - Parameter waited: Nanoseconds since the question.
    /// - Returns: The reply if it may leave now; nil if it is held back.
    mutating func take(_ reply: Reply, to source: Source, waited: UInt64, at now: Tick) -> Reply? {
        if waited < Self.shortestWait || held.count >= Self.maximum { return reply }
        if !waiting.contains(source), mayLeave(source, at: now) { return reply }
        held.append((reply, source))
        waiting.insert(source)
        nextDeadline = nextDeadline ?? Self.nextInterval(after: now)
        return nil
    }

    /// The replies that may leave now, in order of arrival.
    mutating func release(at now: Tick) -> [Reply] {
        guard let due = nextDeadline, now >= due else { return [] }
        var (released, rest): ([Reply], [(Reply, Source)]) = ([], [])
        for one in held {
            if mayLeave(one.source, at: now) { released.append(one.reply) } else { rest.append(one) }
        }
        held = rest
        waiting = Set(rest.map(\.1))
        nextDeadline = rest.isEmpty ? nil : Self.nextInterval(after: now)
        return released
    }

    private static func nextInterval(after now: Tick) -> Tick {
        Tick(nanoseconds: (now.nanoseconds / interval &+ 1) &* interval)
    }

    private mutating func mayLeave(_ source: Source, at now: Tick) -> Bool {
        let interval = now.nanoseconds / Self.interval
        if interval != current {
            current = interval
            counts.removeAll(keepingCapacity: counts.count < Self.maximum)
        }
        guard counts[source, default: 0] < Shares.lateReplies else { return false }
        counts[source, default: 0] += 1
        return true
    }
}
