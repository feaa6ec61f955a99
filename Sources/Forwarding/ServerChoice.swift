import Base

/// The servers of a group, and the choice among them: events and the time go in, a choice comes out.
///
/// The first server in the order of preference that is not set aside is asked first, then the others, and last the
/// servers that are set aside. The numbers are those of ``UpstreamGroup/Choice``.
///
/// | event | the server |
/// | --- | --- |
/// | an answer | has its rank again; without a `pause`, it sets aside the servers whose last result was a failure |
/// | SERVFAIL or the like, `refusals` times in a row | is set aside |
/// | failures in a row, `failures` of them | is set aside; ``Silence`` defines which silence counts |
/// | `pause` has passed | is tried, by the next question or beside it; its next pause is twice as long |
/// | a trial ends without a verdict: it is withdrawn, or this machine is short of a resource | is tried again a second later |
/// | the network changes | has its rank again, or is tried by the next question |
/// | a new list contains it | stays as it is; a shorter `pause` holds from when it was set aside |
/// | each server has failed three times in a row | the group is down |
///
/// While a group is down, a question for which another group can be asked goes to one of its servers only if no query
/// to them is under way, and at least a second after the last such question: it probes the group. One answer ends the
/// outage. When no server was asked for 90 s, a question is asked as if the group were not down.
struct ServerChoice {
    let group: GroupID
    private(set) var servers: [ServerState] = []
    private var rule: UpstreamGroup.Choice
    /// The most queries at once to one server; 0 for no limit.
    private var concurrency: Int
    /// Queries under way, including those to servers that were removed from the list.
    private(set) var underWay = 0
    /// When a query was last sent.
    private var askedAt: Tick?
    private var nextNumber = 0
    /// Whether the log has of late that a server refuses names together.
    private var refusalNews = News()

    /// Milliseconds from a question that probes a failed group to the next such question, and from a trial without a
    /// verdict to the next trial.
    static let again = 1000
    /// Milliseconds from the last query for which a group counts as down.
    static let longestLeft = 90_000

    init(_ group: UpstreamGroup) {
        (self.group, rule, concurrency) = (group.id, group.choice, group.concurrency)
        replace(group)
    }

    /// The index of the server that is asked first; 0 without servers.
    private var first: Int { servers.firstIndex { !$0.isPassedOver } ?? 0 }

    /// The server that is asked first; nil without servers.
    var current: ServerState? { servers.isEmpty ? nil : servers[first] }

    /// Whether no server of the group answers; other groups are then asked at once.
    var isDown: Bool { !servers.isEmpty && servers.allSatisfy(\.isLost) }

    /// Until when other groups are asked at once because this group is down.
    var isLeftUntil: Tick { (askedAt ?? Tick(nanoseconds: 0)).advanced(milliseconds: Self.longestLeft) }

    // MARK: The choice

    /// The choice of a server for a question.
    enum Pick {
        /// The server with this index.
        /// - Parameters:
        ///   - isTrial: Whether the server is set aside, and the question shows whether it answers again.
        ///   - beside: The index of another server to try beside the question.
        case server(Int, isTrial: Bool = false, beside: Int? = nil)
        /// All servers that may be asked have as many queries under way as they may have.
        case full
        /// All servers were tried or are paused.
        case noServer
        /// The group is down, and another question probes it.
        case down
        /// A server has room, and the source has had its share of `queriesPerSecond`.
        case pastPlan
    }

    /// `mutating`, like the functions below, so that reading a group copies nothing.
    /// - Parameters:
    ///   - source: See ``ServerState/hasRoom(_:for:at:)``.
    ///   - isFirst: Whether no server of the group was asked this question yet.
    ///   - leadsOn: Whether another group can be asked the question.
    ///   - isTried: Whether a server was asked the question, by ``ServerState/number``.
    mutating func pick(
        for source: Source?, isFirst: Bool, leadsOn: () -> Bool, unlessTried isTried: (Int) -> Bool, at now: Tick
    ) -> Pick {
        if isFirst, isDown, isAsked(at: now), leadsOn() { return .down }
        var isFull = false
        func isOpen(_ index: Int) -> Bool {
            guard !isTried(servers[index].number), !servers[index].health.isPaused(at: now) else { return false }
            let hasRoom = servers[index].hasRoom(concurrency, for: source, at: now)
            isFull = isFull || !hasRoom
            return hasRoom
        }
        var last: Int?
        for index in servers.indices where isOpen(index) {
            if !servers[index].isPassedOver {
                last = index
                break
            }
            if index < first, !rule.triesBeside, servers[index].isDue(rule, at: now) {
                return .server(index, isTrial: true)
            }
            last = last ?? index
        }
        guard let index = last else { return isFull ? .full : .noServer }
        return .server(index, beside: isFirst ? toTry(besides: index, at: now) : nil)
    }

    /// Whether a question may be probing the group at this moment.
    private func isAsked(at now: Tick) -> Bool {
        underWay > 0 || askedAt.map { now.milliseconds(since: $0) < Self.again } ?? false
    }

    /// A server to try beside a question to another server.
    private mutating func toTry(besides other: Int, at now: Tick) -> Int? {
        guard rule.triesBeside else { return nil }
        return servers.indices.first { index in
            index != other && servers[index].isDue(rule, at: now) && !servers[index].health.isPaused(at: now)
                && servers[index].hasRoom(concurrency, at: now)
        }
    }

    /// Whether no server that may be asked has room: see ``ServerState/hasRoom(_:for:at:)``.
    mutating func isFull(for source: Source? = nil, at now: Tick) -> Bool {
        let pick = pick(for: source, isFirst: false, leadsOn: { false }, unlessTried: { _ in false }, at: now)
        return if case .full = pick { true } else { false }
    }

    /// Milliseconds after which the next server is asked too; nil if it never is.
    mutating func nextAfter(_ index: Int) -> Int? {
        guard let longest = rule.nextWithin, servers.count > 1 else { return nil }
        guard let usual = servers[index].health.usualRoundTrip else { return longest }
        return min(max(Timing.shortestPatience, Int(min(2 * usual, 60_000))), longest)
    }

    // MARK: Events

    /// How a query has ended.
    enum Verdict {
        /// - Parameters:
        ///   - hasAnswer: false for SERVFAIL and the like: the server is reachable, but another may give an answer.
        ///   - toRepeat: Whether the answer is to the second attempt; the round trip is measured from that attempt.
        case answered(hasAnswer: Bool, toRepeat: Bool)
        case failed(Failure)
        /// The answer is no longer needed, or the name may not be asked.
        case withdrawn
    }

    /// The group has other settings or servers.
    mutating func replace(_ group: UpstreamGroup) {
        (rule, concurrency) = (group.choice, group.concurrency)
        for index in servers.indices { servers[index].shortenPause(rule) }
        guard group.servers != servers.map(\.server) else { return }
        servers = group.servers.map { server in servers.first { $0.server == server } ?? newState(server) }
    }

    private mutating func newState(_ server: Server) -> ServerState {
        nextNumber += 1
        return ServerState(server, number: nextNumber, health: ServerHealth())
    }

    /// The servers are asked in another way, so their states are reset. A query under way says nothing about the new
    /// way, and its question goes to the same server again if it fails.
    mutating func renew() { for index in servers.indices { servers[index] = newState(servers[index].server) } }

    mutating func networkChanged(at now: Tick) {
        for index in servers.indices { servers[index].networkChanged(rule, at: now) }
    }

    /// A query goes to the server with this index.
    mutating func asked(_ index: Int, for holder: Source?, isTrial: Bool, at now: Tick) {
        servers[index].begins(for: concurrency > 0 ? holder : nil)
        if isTrial { servers[index].putAside(rule, at: now) }
        underWay += 1
        askedAt = now
    }

    /// A query has ended.
    /// - Returns: The events for the log.
    @discardableResult
    mutating func ended(_ query: Query, _ verdict: Verdict, at now: Tick) -> [Event] {
        underWay -= 1
        guard let index = servers.firstIndex(where: { $0.number == query.number }) else { return [] }
        let (before, server) = (first, servers[index].server)
        var events: [Event] = []
        servers[index].ends(for: query.holder)
        var verdict = verdict
        if case .failed(let failure) = verdict, failure.kind == .refusedTogether {
            if refusalNews.isNews(at: now) { events.append(.failing(group, server, failure)) }
            // A server that refuses names works.
            verdict = .answered(hasAnswer: true, toRepeat: false)
        }
        switch verdict {
        case .answered(let hasAnswer, let toRepeat):
            let sent = toRepeat ? query.repeated ?? query.sent : query.sent
            let roundTrip = Double(now.microseconds(since: sent)) / 1000
            if servers[index].answered(hasAnswer, roundTrip: roundTrip, rule, at: now) {
                events.append(.answersAgain(group, server))
            }
            guard hasAnswer, rule.pause == nil else { break }
            for other in servers.indices where other != index { servers[other].yield() }
        case .failed(let failure) where failure.kind != .here:
            let silence = failure.kind == .timedOut ? Silence(of: query, by: servers[index]) : .ofServer
            if servers[index].failed(failure, silence, rule, isTrial: query.isTrial, at: now) {
                events.append(.failing(group, server, failure))
            }
            if failure.kind == .tooOften { servers[index].halveLimit(concurrency, sent: query.sent, at: now) }
        case .failed, .withdrawn: if query.isTrial { servers[index].tryAgain(at: now) }
        }
        if !rule.triesBeside, first != before {
            let (from, to) = (servers[before].server, servers[first].server)
            events.append(
                index == first && first < before
                    ? .returned(group, from: from, to: to) : .switched(group, from: from, to: to))
        }
        return events
    }
}

/// The meaning of a time-out for the server that was asked: a zone whose own servers are silent must not move the names
/// of other zones to another server.
///
/// | from the server since the question was sent | the same question at others of its group | verdict |
/// | --- | --- | --- |
/// | an answer to any question, or a refusal of its own | either | `ofName`: only this question goes on |
/// | nothing | asked, and not answered | `ofAll`: it fails, and retains its rank, since no other is better |
/// | nothing; it is encrypted | answered, or not asked | `ofConnection`: as a SERVFAIL, the third in a row sets it aside |
/// | nothing; it is not | answered, or not asked | `ofServer`: it is set aside |
///
/// An encrypted server whose connection is found dead (closed, reset, refused, TLS impossible) is not judged here: that
/// is a failure like any other, and sets it aside at once. A server that takes connections and answers nothing is found
/// by the third question that another server has answered.
///
/// The servers of an account, and plain resolvers, are asked one after the other, so only the first column counts for
/// them: a time-out during which an answer came does not count among the failures in a row, and the server that is
/// asked for the late name does not take the rank of the silent server. A dead server answers nothing, so each question
/// that was sent after its last answer counts.
enum Silence {
    case ofName, ofAll, ofConnection, ofServer

    init(of query: Query, by server: ServerState) {
        if let heardAt = server.heardAt, query.sent < heardAt {
            self = .ofName
        } else if query.isSilentAlike {
            self = .ofAll
        } else {
            self = server.server.isEncrypted ? .ofConnection : .ofServer
        }
    }
}

extension Query {
    /// Whether other servers of the group were asked the same question, and none has answered.
    fileprivate var isSilentAlike: Bool {
        switch subject {
        case .names: false
        case .message(let step): isOvertaken && !step.hasAnswer
        case .measurement(let step): !step.hasAnswer
        }
    }
}

extension Failure.Kind {
    /// Whether the server itself reported the failure, which shows that the server is reachable.
    var isServersWord: Bool {
        switch self {
        case .unauthorized, .tooOften, .denied, .badAnswer, .refusedTogether: true
        case .timedOut, .unreachable, .untrusted, .insecure, .here: false
        }
    }
}
