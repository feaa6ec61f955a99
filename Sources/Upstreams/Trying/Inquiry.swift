package import Base
package import Forwarding
import Transport

/// Direct questions to servers for an operator, who wants to see the answer of each: without the cache and the rules
/// that choose servers for clients' questions. Each group is asked through an upstream only for inquiries, so nothing
/// is learned or counted either. Confined to the forwarder's loop.
package final class Inquiry: Inquiring {
    /// A server to ask, with the time-out in milliseconds.
    package struct Target {
        let server: Server
        package let group: GroupID
        let timeout: Int
        let ask: Ask

        package init(_ server: Server, of group: GroupID, timeout: Int, _ ask: Ask) {
            (self.server, self.group, self.timeout, self.ask) = (server, group, timeout, ask)
        }
    }

    /// The result of a target; nil if there was no time left to ask it.
    package typealias Said = (outcome: Outcome, milliseconds: Double)?

    private let targets: [Target]
    private let upstreams: [GroupID: any Upstream]
    private let end: Tick
    /// The result of each target, in order.
    package private(set) var said: [Said]
    /// The first target that was not asked yet.
    private var next = 0
    private var underWay: [QueryID: (index: Int, began: Tick, until: Tick)] = [:]
    private var isProceeding = false

    /// The most servers asked at once.
    private static let mostAtOnce = 16

    /// - Parameters:
    ///   - upstreams: The groups' upstreams, which only this inquiry uses until it is over.
    ///   - longest: Milliseconds for all servers together.
    package init(_ targets: [Target], _ upstreams: [GroupID: any Upstream], within longest: Int, at now: Tick) {
        (self.targets, self.upstreams) = (targets, upstreams)
        end = now.advanced(milliseconds: longest)
        said = Array(repeating: nil, count: targets.count)
        for upstream in upstreams.values { upstream.settle = { [unowned self] id, outcome, _ in settle(id, outcome) } }
    }

    package var isOver: Bool { next == targets.count && underWay.isEmpty }

    /// Asks the servers that may be asked now.
    package func proceed(at now: Tick) {
        // A query that fails at once is settled meanwhile.
        guard !isProceeding else { return }
        isProceeding = true
        defer { isProceeding = false }
        while next < targets.count, underWay.count < Self.mostAtOnce {
            let (index, target) = (next, targets[next])
            next += 1
            let id = QueryID(standalone: UInt32(index), of: target.group)
            underWay[id] = (index, now, min(now.advanced(milliseconds: target.timeout), end))
            guard let upstream = upstreams[target.group] else {
                settle(id, .failed(Failure(.unreachable, "it is no longer configured")))
                continue
            }
            upstream.ask(id, target.server, target.ask, at: now)
        }
    }

    private func settle(_ id: QueryID, _ outcome: Outcome) {
        guard let query = underWay.removeValue(forKey: id) else { return }
        let now = Tick(nanoseconds: Clock.now())
        let took = Double(now.nanoseconds &- min(query.began.nanoseconds, now.nanoseconds)) / 1_000_000
        said[query.index] = (outcome, took)
        proceed(at: now)
    }

    package var nextDeadline: Tick? {
        let first = underWay.values.lazy.map(\.until).min()
        return upstreams.values.reduce(first) { $0.orEarlier($1.nextDeadline) }
    }

    package func expire(at now: Tick) {
        for upstream in upstreams.values { upstream.expire(at: now) }
        if end <= now { next = targets.count }
        for (id, query) in underWay where query.until <= now {
            let waited = query.until.milliseconds(since: query.began)
            upstreams[id.group]?.cancel(id, isOverdue: true)
            settle(id, .failed(Failure(.timedOut, "no answer within \(waited) ms")))
        }
    }

    package func close() { for upstream in upstreams.values { upstream.close() } }
}

/// An inquiry for an operator, beside all questions. Confined to the forwarder's loop.
package protocol Inquiring: AnyObject {
    /// Does the work that may be done now.
    func proceed(at now: Tick)
    var isOver: Bool { get }
    var nextDeadline: Tick? { get }
    func expire(at now: Tick)
    /// Gives the inquiry up.
    func close()
}

/// The inquiries under way. Confined to the forwarder's loop.
package final class Inquiries {
    private var all: [(inquiry: any Inquiring, done: () -> Void)] = []

    /// The most inquiries at once: operators are few.
    private static let most = 4

    package init() {}

    package var hasRoom: Bool { all.count < Self.most }

    /// - Parameter done: Called later, at the end of a turn, when the inquiry is over.
    package func begin(_ inquiry: any Inquiring, at now: Tick, _ done: @escaping () -> Void) {
        all.append((inquiry, done))
        inquiry.proceed(at: now)
    }

    /// Drops the inquiries that are over. Called at the end of a turn, when no call of their upstreams is under way.
    package func endTurn() {
        guard !all.isEmpty else { return }
        let over = all.filter(\.inquiry.isOver)
        all.removeAll { $0.inquiry.isOver }
        for (_, done) in over { done() }
    }

    package var nextDeadline: Tick? {
        // The deadline is read in each turn of the loop.
        all.isEmpty ? nil : all.reduce(nil) { $0.orEarlier($1.inquiry.nextDeadline) }
    }

    package func expire(at now: Tick) { for (inquiry, _) in all { inquiry.expire(at: now) } }

    package func close() {
        for (inquiry, _) in all { inquiry.close() }
        all = []
    }
}
