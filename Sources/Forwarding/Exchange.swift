public import Base
public import DNSWire

/// The number by which the shell knows a client. The forwarder gives each number back once, in the reply.
public typealias ClientNumber = Int

/// An instruction to the shell. Actions are carried out in order; the outcome of each query comes back through
/// `Forwarder.settle`, at any later time, or never: deadlines are the forwarder's own.
public enum Action {
    /// Give each client the answer, with the client's own id, spelling and size limit. `way` is the most readable way in which
    /// the question was sent to servers until now.
    case reply(SmallList<ClientNumber>, Answer, Reply.Age, by: Answerer, way: Exposure)
    /// Send this to a server of the query's group.
    case ask(QueryID, Server, Ask)
    /// The server is silent, or the network has changed: send the same to it once more in another way (over a fresh
    /// connection, or with another id and port). The first answer counts, to either.
    case askAgain(QueryID)
    /// The answer to this query is not wanted any more.
    /// - Parameter isOverdue: It has not come within the time of an attempt.
    case cancel(QueryID, isOverdue: Bool)
    /// Addresses are tried for `[cache] rank`, or not any more.
    case trial(TrialAction)
    /// An event for the log; reported once for each change.
    indirect case report(Event)
    /// A lookup at an HTTPDNS account failed or was unusual (`enableReport`); reported for each.
    indirect case reportLookup(AbnormalLookup)
    /// Something to be done with the store.
    indirect case shared(SharedAction)
}

/// A query under way to a server of a group.
public struct QueryID: Hashable, Sendable {
    /// The group whose server is asked.
    public let group: GroupID
    let id: TableID

    init(_ group: GroupID, _ id: TableID) { (self.group, self.id) = (group, id) }

    /// Another for each query under way. The lowest ``placeBits`` are those of a place in tables, which no other query has
    /// at the same time: as low as there was one free.
    public var number: UInt64 { id.serial &<< Self.placeBits | UInt64(id.number) }

    /// How many bits of numbers are those of a place in tables.
    public static let placeBits: UInt64 = 20

    /// A query that was not made by a forwarder, for code that asks a server directly.
    public init(standalone number: UInt32, of group: GroupID) {
        self.init(group, TableID(standalone: number))
    }
}

/// The addresses of one answer, which are tried together.
public struct TrialID: Hashable, Sendable {
    let id: TableID

    init(_ id: TableID) { self.id = id }

    /// A trial that was not made by a forwarder.
    public init(standalone number: UInt32) { self.init(TableID(standalone: number)) }
}

/// An instruction about a trial.
public enum TrialAction: Sendable, Equatable {
    /// Connect to each of these endpoints by TCP, beside everything else, and tell of each whether it takes the
    /// connection: see ``Forwarder/tried(_:_:hasAnswered:at:)``. Nothing is sent; what is connected is closed at once.
    case begin(TrialID, [Endpoint])
    /// Connections that are not established yet are not wanted any more.
    case end(TrialID)
}

/// The content of a query.
public enum Ask: Sendable, Equatable {
    /// The addresses of these names, in one request.
    case addresses([Name], Families)
    case message(MessageQuestion)
}

/// A question that is put as a DNS message.
public struct MessageQuestion: Hashable, Sendable {
    /// The name that is asked for.
    public var name: Name
    /// The type that is asked for.
    public var type: RecordType
    /// The bit DO: the client wants signatures.
    public var dnssecOK: Bool
    /// The bit CD: the client checks signatures itself.
    public var checkingDisabled: Bool

    /// A question, by default one with neither bit set.
    public init(name: Name, type: RecordType, dnssecOK: Bool = false, checkingDisabled: Bool = false) {
        self.name = name
        self.type = type
        self.dnssecOK = dnssecOK
        self.checkingDisabled = checkingDisabled
    }
}

/// How a query ended.
public enum Outcome: Sendable, Equatable {
    /// The result of an HTTPDNS service, and why it has no addresses where it says so. Names that it does not mention are absent.
    case addresses([NameAddresses], [AbsenceReason] = [])
    /// A DNS message that answers the question, whatever its response code.
    case answer(Answer)
    case failed(Failure)
}

/// Why an attempt failed: `kind` for decisions, `detail` for the log (one line, no secrets, no query names).
public struct Failure: Sendable, Equatable {
    /// What the failure means for the server, and for the names that it was asked.
    public enum Kind: Sendable, Equatable {
        case timedOut
        case unreachable
        /// The peer's certificate was refused.
        case untrusted
        /// TLS could not be agreed on: the peer speaks none, no version in common, or has ended it.
        case insecure
        /// The account was refused, or the way it is asked (HTTP 401 and 403).
        case unauthorized
        /// HTTP 429: too many requests.
        case tooOften
        /// The server says that it does not serve the account now; another may.
        case denied
        /// Another status, or an answer that does not decrypt or parse.
        case badAnswer
        /// This machine is short of something, such as descriptors: it says nothing of the server, and no other is asked.
        case here
    }

    /// What decisions are made by.
    public var kind: Kind
    /// One line for the log, without secrets and without names that were asked for.
    public var detail: String
    /// The HTTP status, where there was one.
    public var statusCode: Int?
    /// With `tooOften` and `unauthorized`: the seconds for which the server asks not to be asked; nil if it gives none.
    public var retryAfter: Int?

    /// The parameters are those of the properties.
    public init(_ kind: Kind, _ detail: String, statusCode: Int? = nil, retryAfter: Int? = nil) {
        self.kind = kind
        self.detail = detail
        self.statusCode = statusCode
        self.retryAfter = retryAfter
    }

    /// "No record" from HTTPDNS in a mode in which an attacker may have written it.
    static let unproven = Failure(.badAnswer, "no record, which aes and des do not prove")

    /// A server asks this daemon what the daemon asks it.
    static let loop = Failure(.badAnswer, "a loop: the server asks this daemon what it is asked")

    /// RFC 8914: 22 when no server answered in time, 14 when this machine is short of something, 23 when the network or the peer
    /// made an answer impossible.
    var extendedError: ExtendedError {
        switch kind {
        case .timedOut: .noReachableAuthority
        case .here: .notReady
        default: .networkError
        }
    }
}

/// A lookup at an HTTPDNS account that failed, or whose names were then asked of the next group of their route.
public struct AbnormalLookup: Sendable, Equatable {
    /// The account's group.
    public var group = GroupID.httpdns
    /// The names of the request.
    public var names: [Name]
    /// The families that were asked for.
    public var families: Families
    /// The server that failed; nil when every server failed or none could be asked.
    public var server: Server?
    /// Why it failed; nil when the plan's limit was reached.
    public var failure: Failure?
    /// Milliseconds from the request to its failure, or from the first question if no server could be asked.
    public var spend: Int
    /// Whether the next group was asked instead.
    public var fellBack: Bool
}

/// A change of state that is worth a line in the log.
public enum Event: Sendable, Equatable {
    case failing(GroupID, Server, Failure)
    case answersAgain(GroupID, Server)
    /// So many attempts failed in a row (``UpstreamGroup/Choice/inOrder(switchAfter:returnAfterMinutes:)``).
    case switched(GroupID, from: Server, to: Server)
    /// The first server answered again.
    case returned(GroupID, from: Server, to: Server)
    /// A limit is exceeded, and questions beyond it get SERVFAIL.
    case refusing(Refusal)
    /// `queriesPerSecond` is exceeded: further names go to the next group of their route, or wait.
    case planExceeded(GroupID)
    /// Too many names below one domain had no record: further ones go to the next group of their route, or are refused.
    case noRecordBudgetSpent(GroupID)
    /// This machine is short of what a query needs, and why; said when it begins.
    case short(String)
    /// Private addresses were removed from an answer.
    case privateRefused
    /// A client that validates asks for a name of this account, so the other group is asked. Said once.
    case leftToValidators(GroupID, asked: GroupID)
    /// The store cannot be used, and why; said once until it can be.
    case sharedCacheOff(String)
    case sharedCacheOn
    /// The store takes no entries, and why.
    case sharedCacheTakesNothing(String)
    case sharedCacheTakesAgain
    /// An entry lies in the future: the writer's clock or this machine's is wrong. Said once.
    case sharedCacheClock
}

/// Why a question was refused.
public enum Refusal: Sendable, Equatable {
    case tooManyFlights
    case tooManyWaiting
}
