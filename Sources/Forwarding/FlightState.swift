import Base
import DNSCache
import DNSWire

/// What one step of a flight's route is doing, or how it has ended.
enum StepState: UInt8 {
    /// It has not begun.
    case ahead
    /// It is not asked: the end of the step before does not lead to it.
    case passedOver
    /// It is not asked: its group has no server.
    case withoutServer
    /// Its group is being asked, or the store of the fleet before it: it may still answer.
    case asked
    /// Its answer was given to the clients.
    case answered
    /// No server answered in time, or only with SERVFAIL and the like; or the group could not be asked.
    case failed
    /// Every server that answered said REFUSED.
    case refused
    /// The answer was NXDOMAIN, and leads to another group.
    case nxDomain
    /// The answer was NOERROR without a record, and leads to another group.
    case noData
    /// An account has no record of the name, and proves it; or an answer without an SOA says so, and leads to another group.
    case noRecord
    /// An account says that it has no record of the name, in a mode in which an attacker may have written that.
    case unproven

    /// - Parameter end: one end.
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
    /// A route's first step begins whatever was before it.
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

/// Who waits for a flight.
enum FlightPhase {
    /// No client has an answer yet.
    /// - Parameters:
    ///   - isWanted: Whether a client has asked. If not, the daemon asks for itself, to fill the cache; then no other
    ///     group is asked in the place of an HTTPDNS account.
    ///   - staleAt: When the clients get a stale answer; nil if there is none.
    ///   - answerBy: When the clients get the best answer there is, or a failure.
    case open(isWanted: Bool, staleAt: Tick?, answerBy: Tick)
    /// Whoever waited has an answer, stale or of another group, or a failure; the flight goes on to fill the cache.
    case answered(isWanted: Bool)
}

/// What the groups of a route are like, as far as a flight depends on it.
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
        /// Whether no server of it answers, so that the next step begins at once.
        var isDown = false
        /// Until when the next step begins at once because of it: what was found out longer ago may be over.
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
    /// The server that failed; nil if none was asked.
    var server: Server?
}

/// An answer that is given if no better one comes.
struct SecondBest {
    var answer: Answer
    var by: Answerer
    /// The step whose group gave it.
    var step: Int
}

/// What is known of a route's first steps before a flight begins, so that their groups are not asked.
struct StepsBefore {
    /// How many they are.
    private(set) var count = 0
    /// How many of them were looked at; nil: all.
    private var known: Int?
    private var unproven: UInt64 = 0
    /// Whether the last of them is not asked because too many names below its domain had no record.
    private(set) var isBudgetSpent = false

    /// Whether the last of them may have a record all the same.
    private(set) var isLastUnproven = false

    /// A group is known to have no record of the name.
    mutating func addWithoutRecord(isProven: Bool) {
        isLastUnproven = !isProven
        if !isProven { unproven |= 1 &<< count }
        count += 1
    }

    mutating func addPastBudget() {
        isBudgetSpent = true
        count += 1
    }

    /// No step of the route is to be asked: the end of the last of them does not lead on.
    mutating func addAll(of route: [Step]) { (known, count) = (count, route.count) }

    func state(of step: Int) -> StepState {
        if let known, step >= known { return .passedOver }
        if isBudgetSpent, step == count - 1 { return .failed }
        return unproven & 1 &<< step == 0 ? .noRecord : .unproven
    }
}

/// What happens to a flight. A step is named by its index in the route.
enum FlightEvent {
    case begun
    /// The first client asks a question that the daemon had asked for itself.
    case wanted
    /// A client came after the others were answered, and waits.
    case reopened
    /// Its clients have waited for another flight before, which was in this phase: their moments stay the same.
    case waitedBefore(FlightPhase)
    /// One of ``Flight/nextMoment`` has come.
    /// - Parameter hasStale: whether there is a stale answer; only looked at when ``Flight/isStaleDue(at:)``.
    case due(hasStale: Bool)
    /// A server has failed, and the group goes on to its next one.
    case failed(Trouble)
    /// A server said SERVFAIL or the like, or REFUSED, and the group goes on to its next one.
    case refused(step: Int, Answer, by: Answerer)
    /// A group that carries messages has an answer.
    case answered(step: Int, Answer, by: Answerer)
    /// There is an answer of that group that it was not asked for: the store of the fleet has it, or the group leaves the type out.
    case stored(step: Int, Answer, by: Answerer)
    /// An account has no record of the name.
    /// - Parameter answer: what the clients get if no other group is to be asked.
    case withoutRecord(step: Int, isProven: Bool, Answer, by: Answerer)
    /// A group can give no answer.
    /// - Parameters:
    ///   - end: ``StepEnds/failure`` or ``StepEnds/refused``.
    ///   - because: why an account's name goes to the next group, for the counters.
    case exhausted(step: Int, StepEnds, Trouble?, because: FallbackReason?)
    /// The store has a stale answer, which was put into the cache.
    case staleFound
    /// A step is not asked after all: nobody waits for it, or another daemon of the fleet refreshes the entry.
    case dropped(step: Int)
    /// The store has nothing, and its step's group was asked before.
    case storeIsSilent
}

/// What is to be done for a flight after an event, in the order of these properties. The answers that it is about stand in the
/// flight: an order with an answer in it costs some 2,000 instructions a question.
struct FlightOrders {
    /// The answers of this step's servers are not wanted any more.
    var leave: Int?
    /// Ask the group of this step, or the store before it.
    var ask: Int?
    /// Why that group is asked after another, or beside it, if that is counted.
    var because: FallbackReason?
    var give: Gift?
    /// The answer that was given stands in for that of a group which has failed.
    var notesStandIn = false
    /// ``Flight/nextMoment`` is another one.
    var schedules = false
    private(set) var ends = false

    mutating func end() { ends = true }

    /// What the clients get.
    enum Gift {
        /// ``Flight/secondBest``, the answer of a message group, is cached and given.
        case answer(isStandIn: Bool, isFromStore: Bool)
        /// The same of ``Flight/secondBest`` by which an account has proven to have no record.
        case noRecord(isStandIn: Bool)
        case stale
        /// Time is over: ``Flight/secondBest``, or a failure.
        case whatThereIs
        /// No step can still answer: a stale answer, or ``Flight/secondBest``, or a failure; and the flight ends.
        case failure
    }
}

/// The bases of what groups may answer to a question. 0: it is not cached.
struct AnswerBases: Equatable {
    /// Of an answer to the question itself.
    var ofMessages: Basis = 0
    /// Of the addresses of each family that an account gives.
    var ipv4: Basis = 0, ipv6: Basis = 0
}
