import Base
import DNSCache
import DNSWire

/// The state of one step of a flight's route.
enum StepState: UInt8 {
    /// The step has not begun.
    case ahead
    /// The step is not asked, since the end of the preceding step does not lead to it.
    case passedOver
    /// The step is not asked, since its group has no server.
    case withoutServer
    /// The step's group, or the fleet's store before the group, is being asked, and may still answer.
    case asked
    /// The step's answer was given to the clients.
    case answered
    /// No server answered in time, or only with SERVFAIL and the like; or the group could not be asked.
    case failed
    /// Every server that answered returned REFUSED.
    case refused
    /// The answer was NXDOMAIN, and leads to another group.
    case nxDomain
    /// The answer was NOERROR without a record, and leads to another group.
    case noData
    /// An account proves that it has no record of the name; or an answer without an SOA indicates so, and leads to
    /// another group.
    case noRecord
    /// An account reports no record of the name, in a mode in which an attacker may have written the report.
    case unproven

    /// - Parameter end: The end of the step, a set of one element.
    init(_ end: StepEnds) {
        switch end {
        case .refused: self = .refused
        case .nxDomain: self = .nxDomain
        case .noData: self = .noData
        case .noRecord: self = .noRecord
        default: self = .failed
        }
    }
}

extension StepEnds {
    /// All ends, since a route's first step begins in any case.
    static let any: StepEnds = [.failure, .refused, .nxDomain, .noData, .noRecord]
}

/// A client that waits for a flight's answer.
struct Waiter {
    let number: ClientNumber
    let source: Source
    /// See ``Asker/isProven``.
    let isProven: Bool
}

/// Whether clients wait for a flight.
enum FlightPhase {
    /// No client has an answer yet.
    /// - Parameters:
    ///   - isWanted: Whether a client has asked. Else the daemon asks for itself, to fill the cache; then no other
    ///     group is asked instead of an HTTPDNS account.
    ///   - staleAt: When the clients get a stale answer; nil if there is none.
    ///   - answerBy: When the clients get the best answer so far, or a failure.
    case open(isWanted: Bool, staleAt: Tick?, answerBy: Tick)
    /// All clients have an answer, stale or of another group, or a failure; the flight goes on to fill the cache.
    /// - Parameter isStale: Whether the answer is stale, and a group still owes its own.
    case answered(isWanted: Bool, isStale: Bool)
}

/// The traits of groups that flights depend on.
struct FlightRules {
    var timing: Timing
    /// By `GroupID.rawValue`.
    var groups: [GroupTraits] = []

    struct GroupTraits: Equatable {
        var hasServers = false
        var carriesAddresses = false
        /// See ``UpstreamGroup/isProven`` and ``UpstreamGroup/isShared``.
        var isProven = true
        var isShared = false
        /// Whether no server of the group answers; the next step then begins at once.
        var isDown = false
        /// Whether it has a plan (`queriesPerSecond`), past which a question goes to the next group.
        var hasPlan = false
        /// Why the group is down; nil if it is not.
        var downBecause: FallbackReason?
        /// Until when the next step begins at once because of ``isDown``, which may be outdated after that.
        var isLeftUntil = Tick(nanoseconds: 0)
    }

    func hasServers(_ step: Step) -> Bool { groups[step.group.rawValue].hasServers }
    func carriesAddresses(_ step: Step) -> Bool { groups[step.group.rawValue].carriesAddresses }
    subscript(group: GroupID) -> GroupTraits { groups[group.rawValue] }

    /// Milliseconds after which a step begins although the former step is under way, at once if the former group is down;
    /// nil if it never does: the servers of a group that carries messages are asked beside each other instead.
    func hedgeAfter(_ former: Step, before next: Step, at now: Tick) -> Int? {
        let group = self[former.group]
        if group.isDown, now < group.isLeftUntil { return 0 }
        return group.carriesAddresses ? next.hedgeAfter : nil
    }

    /// How many seconds a group's "no record" is cached.
    func negativeTTL(of group: GroupID) -> UInt32 {
        self[group].isProven ? timing.noRecordTTL : min(timing.noRecordTTL, Timing.unprovenNegativeTTL)
    }
}

/// The latest reason why a group gave a flight no answer.
struct Trouble {
    var failure: Failure
    var group: GroupID
    /// The server that failed; nil if no server was asked.
    var server: Server?
}

/// The answer of a step.
struct StepAnswer {
    var answer: Answer
    var by: Answerer
    /// The step whose group gave the answer.
    var step: Int
}

/// The known state of a route's first steps before a flight begins; the groups of these steps are not asked.
struct StepsBefore {
    private(set) var states: [StepState] = []

    var count: Int { states.count }
    /// Whether the last step that was not passed over is unproven: its group may still have a record.
    var isLastUnproven: Bool { states.last { $0 != .passedOver } == .unproven }

    /// Adds a group that is known to have no record of the name.
    mutating func addWithoutRecord(isProven: Bool) { states.append(isProven ? .noRecord : .unproven) }

    /// Marks the remaining steps as not to be asked, since the end of the last known step does not lead on.
    mutating func addAll(of route: [Step]) {
        states += repeatElement(.passedOver, count: route.count - states.count)
    }
}

/// An event of a flight. A step is named by its index in the route.
enum FlightEvent {
    case begun
    /// The first client asks a question that the daemon has asked for itself.
    case wanted
    /// A client comes after the earlier ones were answered, and waits.
    case reopened
    /// The flight replaces a flight in this phase, whose clients retain their deadlines.
    case waitedBefore(FlightPhase)
    /// ``Flight/nextMoment`` has come.
    /// - Parameter stale: The stale answer, if there is one; read only if ``Flight/isStaleDue(at:)``.
    case due(stale: DNSCache.Held?)
    /// A server has failed, and the group goes on to its next server.
    case failed(Trouble)
    /// A server has returned SERVFAIL or the like, or REFUSED, and the group goes on to its next server.
    case refused(StepAnswer)
    /// A group that carries messages has an answer.
    case answered(StepAnswer)
    /// The group's answer is known without a query: the fleet's store has it, or the group leaves the type out.
    case stored(StepAnswer)
    /// An account has no record of the name.
    /// - Parameter answer: The clients' answer if no other group is to be asked.
    case withoutRecord(StepAnswer, isProven: Bool)
    /// A group can give no answer.
    /// - Parameters:
    ///   - end: ``StepEnds/failure`` or ``StepEnds/refused``.
    ///   - because: Why an account's name goes to the next group, for the counters.
    case exhausted(step: Int, StepEnds, Trouble?, because: FallbackReason? = nil)
    /// The store had a stale answer, which is in the cache now.
    case staleFound
    /// A step is not asked after all: no client waits, or another daemon of the fleet refreshes the entry.
    case dropped(step: Int)
    /// The store has no entry, and the step's group was asked before.
    case storeIsSilent
}

/// The orders that follow from an event of a flight, carried out in the order of these properties. Their answers are in
/// the flight: an order with an answer in it costs some 2,000 instructions a question.
struct FlightOrders {
    /// End the queries of this step: their answers are not needed.
    var leave: Int?
    /// Ask the group of this step, or the store before it.
    var ask: Int?
    /// Why the group of ``ask`` is asked after an account or beside it, for the counters.
    var because: FallbackReason?
    var give: Gift?
    /// Whether a given answer is a substitute for one that a group owes: see ``Flight/isOwed(_:_:)``.
    var notesStandIn = false
    /// Whether ``Flight/nextMoment`` has changed.
    var schedules = false
    private(set) var ends = false

    mutating func end() { ends = true }

    /// The answer for the clients.
    enum Gift {
        /// ``Flight/secondBest``, the answer of a message group: cache it and give it.
        case answer(isStandIn: Bool)
        /// ``Flight/secondBest``, an account's proven "no record": cache it and give it.
        case noRecord(isStandIn: Bool)
        case stale
        /// Time is over: the cached answer, ``Flight/secondBest``, or a failure.
        case bestSoFar
        /// No step can still answer: a stale answer, ``Flight/secondBest``, or a failure; and the flight ends.
        case failure
    }
}

/// The bases of the answers that groups may give to a question. An answer with the basis 0 is not cached.
struct AnswerBases: Equatable {
    /// The basis of an answer to the question itself.
    var ofMessages: Basis = 0
    /// The basis of the addresses that an account gives, by family.
    var ipv4: Basis = 0, ipv6: Basis = 0
}

/// The readable properties of a flight.
extension Flight {
    /// Whether a client has asked this question.
    var isWanted: Bool {
        switch phase {
        case .open(let isWanted, _, _), .answered(let isWanted, _): isWanted
        }
    }

    /// Whether the clients have a stale answer or a failure.
    var isAnswered: Bool { if case .answered = phase { true } else { isOver } }

    /// When the next deadline is due, whatever the servers do.
    var nextMoment: Tick? {
        guard case .open(_, let staleAt, let answerBy) = phase else { return hedgeAt }
        return min(min(hedgeAt ?? answerBy, staleAt ?? answerBy), answerBy)
    }

    /// Whether the event that is due gives a stale answer.
    func isStaleDue(at now: Tick) -> Bool {
        if case .open(_, let staleAt?, _) = phase { staleAt <= now } else { false }
    }

    func isUnderWay(_ step: Int) -> Bool { steps[step] == .asked }

    /// Whether a group that carries messages has answered; an earlier step may still be under way.
    var wasAnswered: Bool { has(.answered, in: 0..<route.count) }

    /// Whether no step can still answer.
    var isDone: Bool { !has(.asked, in: 0..<route.count) }

    func has(_ state: StepState, in range: Range<Int>) -> Bool { range.contains { steps[$0] == state } }

    /// The last step that has begun or was passed over; nil if no step has.
    var last: Int? { route.indices.last { steps[$0] != .ahead } }

    /// The last step that may still answer; at least one step may while the flight is open.
    var lastUnderWay: Int { route.indices.last { isUnderWay($0) } ?? 0 }

    /// The next step whose group has servers and follows this end of the preceding step; nil if there is none.
    /// - Parameter step: The preceding step; nil for the last step that has begun.
    func nextStep(after end: StepEnds, behind step: Int? = nil, _ rules: FlightRules) -> Int? {
        let first = (step ?? last).map { $0 + 1 } ?? 0
        return route[first...].firstIndex { !$0.after.isDisjoint(with: end) && rules.hasServers($0) }
    }

    /// The step that begins although this one is under way, and after how many milliseconds; nil if none does.
    func hedge(behind step: Int, _ rules: FlightRules, at now: Tick) -> (step: Int, after: Int)? {
        guard let next = nextStep(after: .failure, behind: step, rules) else { return nil }
        return rules.hedgeAfter(route[step], before: route[next], at: now).map { (next, $0) }
    }

    /// Whether another group is asked after a step has failed, or is being asked already.
    func leadsOn(from step: Int, _ rules: FlightRules) -> Bool {
        if let last, last > step { return has(.asked, in: (step + 1)..<route.count) }
        return !isLastResort && nextStep(after: .failure, behind: step, rules) != nil
    }

    /// The ends of a step after which its answer is not given: another group is asked, or an earlier group has the name.
    /// None for an account, whose answers lead nowhere.
    func endsThatLeadOn(from step: Int, _ rules: FlightRules) -> StepEnds {
        if rules.carriesAddresses(route[step]) { return [] }
        let denied: StepEnds = hasName(before: step) ? .nxDomain : []
        return route[(step + 1)...].reduce(into: denied) { $0.formUnion($1.after) }
    }

    /// Whether the name has records of other types at an earlier group, so that no group's NXDOMAIN is given for it.
    func hasName(before step: Int) -> Bool { has(.noData, in: 0..<step) }

    /// Whether the account with this origin, of an earlier step, has no record of the name. After a restart the origin
    /// is unknown, and may be any account of the route.
    func isWithoutRecord(_ origin: UInt16, before step: Int, _ rules: FlightRules) -> Bool {
        let accounts = route.indices.filter {
            origin == 0 ? rules.carriesAddresses(route[$0]) : route[$0].group.origin == origin
        }
        return !accounts.isEmpty && accounts.allSatisfy { $0 < step && steps[$0] == .noRecord }
    }

    /// The step that an answer leads to; nil if the answer leads to no other group, as an account's: the account has
    /// the name, and no AAAA record.
    func next(after best: StepAnswer, _ rules: FlightRules) -> Step? {
        guard let end = StepEnds(of: best.answer), !rules.carriesAddresses(route[best.step]) else { return nil }
        return route[(best.step + 1)...].first { !$0.after.isDisjoint(with: end) }
    }

    /// Whether an answer of this step is only a substitute, since an earlier group still owes one. The earlier group
    /// - failed, or has not proven that it has no record,
    /// - is still being asked, or
    /// - is an account that could not be asked. An account's answer is as good as another account's.
    ///
    /// - Parameter step: The answering step, or the number of steps if that step is not known.
    func standsIn(_ step: Int, _ rules: FlightRules) -> Bool {
        let isAccount = step < route.count && rules.carriesAddresses(route[step])
        return (0..<step).contains { before in
            (steps[before] == .unproven || steps[before] == .asked || isOwed(before, rules))
                && !(isAccount && rules.carriesAddresses(route[before]))
        }
    }

    /// Whether a step's group owes its answer: the group failed, or is an account that could not be asked.
    func isOwed(_ step: Int, _ rules: FlightRules) -> Bool {
        steps[step] == .failed || steps[step] == .withoutServer && rules.carriesAddresses(route[step])
    }

    /// The index of a group in the route, in which it occurs once.
    func step(of group: GroupID) -> Int { route.firstIndex { $0.group == group }! }

    /// The question in the form for groups that carry messages.
    var question: MessageQuestion {
        var question = MessageQuestion(name: key.name.name, type: key.type)
        if case .those(let dnssecOK, let checkingDisabled) = key.audience {
            (question.dnssecOK, question.checkingDisabled) = (dnssecOK, checkingDisabled)
        }
        return question
    }
}
