import Base
import DNSCache
import DNSWire

/// The state of one step of a flight's route.
enum StepState: UInt8 {
    /// It has not begun.
    case ahead
    /// It is not asked: the end of the step before does not lead to it.
    case passedOver
    /// It is not asked: its group has no server.
    case withoutServer
    /// Its group, or the fleet's store before it, is being asked: it may still answer.
    case asked
    /// Its answer was given to the clients.
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

    /// - Parameter end: One end.
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
    /// A route's first step begins in any case.
    static let any: StepEnds = [.failure, .refused, .nxDomain, .noData, .noRecord]
}

extension Flight {
    struct Crowd {
        var clients: SmallList<Waiter>
        var source: Source
    }
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
    ///   - staleAt: When the clients get a stale answer; nil: there is none.
    ///   - answerBy: When the clients get the best answer so far, or a failure.
    case open(isWanted: Bool, staleAt: Tick?, answerBy: Tick)
    /// All clients have an answer, stale or of another group, or a failure; the flight goes on to fill the cache.
    case answered(isWanted: Bool)
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
        /// Whether none of its servers answers: the next step then begins at once.
        var isDown = false
        /// Until when the next step begins at once for that reason: older findings may be outdated.
        var isLeftUntil = Tick(nanoseconds: 0)
    }

    func hasServers(_ step: Step) -> Bool { groups[step.group.rawValue].hasServers }
    func carriesAddresses(_ step: Step) -> Bool { groups[step.group.rawValue].carriesAddresses }
    subscript(group: GroupID) -> GroupTraits { groups[group.rawValue] }

    /// How many seconds a group's "no record" is cached.
    func negativeTTL(of group: GroupID) -> UInt32 {
        self[group].isProven ? timing.negativeTTL : min(timing.negativeTTL, Timing.unprovenNegativeTTL)
    }
}

/// The latest reason why a group gave a flight no answer.
struct Trouble {
    var failure: Failure
    var group: GroupID
    /// The server that failed; nil: none was asked.
    var server: Server?
}

/// An answer for the case that no better one comes.
struct SecondBest {
    var answer: Answer
    var by: Answerer
    /// The step whose group gave it.
    var step: Int
}

/// The known state of a route's first steps before a flight begins: their groups are not asked.
struct StepsBefore {
    /// The number of these steps.
    private(set) var count = 0
    /// How many of them were checked; nil: all.
    private var known: Int?
    private var unproven: UInt64 = 0
    /// Whether the last of them is not asked because too many names below its domain had no record.
    private(set) var isBudgetSpent = false

    /// Whether the last of them may still have a record.
    private(set) var isLastUnproven = false

    /// Adds a group that is known to have no record of the name.
    mutating func addWithoutRecord(isProven: Bool) {
        isLastUnproven = !isProven
        if !isProven { unproven |= 1 &<< count }
        count += 1
    }

    mutating func addPastBudget() {
        isBudgetSpent = true
        count += 1
    }

    /// Marks all steps of the route as not to be asked: the end of the last known step does not lead on.
    mutating func addAll(of route: [Step]) { (known, count) = (count, route.count) }

    func state(of step: Int) -> StepState {
        if let known, step >= known { return .passedOver }
        if isBudgetSpent, step == count - 1 { return .failed }
        return unproven & 1 &<< step == 0 ? .noRecord : .unproven
    }
}

/// An event of a flight. A step is named by its index in the route.
enum FlightEvent {
    case begun
    /// The first client asks a question that the daemon has asked for itself.
    case wanted
    /// A client waits that came after the earlier ones were answered.
    case reopened
    /// It replaces a flight in this phase: its clients retain their deadlines.
    case waitedBefore(FlightPhase)
    /// ``Flight/nextMoment`` has come.
    /// - Parameter hasStale: Whether there is a stale answer; read only if ``Flight/isStaleDue(at:)``.
    case due(hasStale: Bool)
    /// A server has failed, and the group goes on to its next one.
    case failed(Trouble)
    /// A server has returned SERVFAIL or the like, or REFUSED, and the group goes on to its next one.
    case refused(step: Int, Answer, by: Answerer)
    /// A group that carries messages has an answer.
    case answered(step: Int, Answer, by: Answerer)
    /// The group's answer is known without asking it: the fleet's store has it, or the group leaves the type out.
    case stored(step: Int, Answer, by: Answerer)
    /// An account has no record of the name.
    /// - Parameter answer: The clients' answer if no other group is to be asked.
    case withoutRecord(step: Int, isProven: Bool, Answer, by: Answerer)
    /// A group can give no answer.
    /// - Parameters:
    ///   - end: ``StepEnds/failure`` or ``StepEnds/refused``.
    ///   - because: Why an account's name goes to the next group, for the counters.
    case exhausted(step: Int, StepEnds, Trouble?, because: FallbackReason?)
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
    /// Why that group is asked after another or beside it, for the counters.
    var because: FallbackReason?
    var give: Gift?
    /// The given answer is a substitute for that of a failed group.
    var notesStandIn = false
    /// ``Flight/nextMoment`` has changed.
    var schedules = false
    private(set) var ends = false

    mutating func end() { ends = true }

    /// The answer for the clients.
    enum Gift {
        /// ``Flight/secondBest``, the answer of a message group: cache it and give it.
        case answer(isStandIn: Bool, isFromStore: Bool)
        /// ``Flight/secondBest``, an account's proven "no record": cache it and give it.
        case noRecord(isStandIn: Bool)
        case stale
        /// Time is over: ``Flight/secondBest``, or a failure.
        case bestSoFar
        /// No step can still answer: a stale answer, ``Flight/secondBest``, or a failure; and the flight ends.
        case failure
    }
}

/// The bases of the answers that groups may give to a question. 0: the answer is not cached.
struct AnswerBases: Equatable {
    /// The basis of an answer to the question itself.
    var ofMessages: Basis = 0
    /// The basis of the addresses that an account gives, by family.
    var ipv4: Basis = 0, ipv6: Basis = 0
}
