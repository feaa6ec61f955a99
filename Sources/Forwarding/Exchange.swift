public import Base
public import DNSWire

/// The shell's number of a client. The forwarder returns each number once, in the reply.
public typealias ClientNumber = Int

/// An order to the shell. Orders are carried out in sequence; the outcome of each query comes back through
/// `Forwarder.settle` at any later time, or never: the forwarder has its own deadlines.
public enum Action {
    /// Give each client the answer, with the client's own ID, spelling and size limit. `way` is the least protected way
    /// in which the question has been sent to servers.
    case reply(SmallList<ClientNumber>, Answer, Reply.Age, by: Answerer, way: Exposure)
    /// Send the query to a server of its group.
    case ask(QueryID, Server, Ask)
    /// The server is silent, or the network has changed: repeat the query to it in another way (over a new connection,
    /// or with another ID and port). The first answer to either query counts.
    case askAgain(QueryID)
    /// The answer to this query is no longer needed.
    /// - Parameter isOverdue: No answer came within the time of an attempt.
    case cancel(QueryID, isOverdue: Bool)
    /// Begins or ends a trial of addresses for `[cache] rank`.
    case trial(TrialAction)
    /// An event for the log; each change is reported once.
    indirect case report(Event)
    /// A lookup at an HTTPDNS account failed or was unusual (`enableReport`); each such lookup is reported.
    indirect case reportLookup(AbnormalLookup)
    /// An order about the store.
    indirect case shared(SharedAction)
}

/// A query under way to a server of a group.
public struct QueryID: Hashable, Sendable {
    /// The group whose server is asked.
    public let group: GroupID
    let id: TableID

    init(_ group: GroupID, _ id: TableID) { (self.group, self.id) = (group, id) }

    /// A number that no other query under way has. Its lowest ``indexBits`` bits are an index of tables: the lowest
    /// free index, so no other query has it at the same time.
    public var number: UInt64 { id.serial &<< Self.indexBits | UInt64(id.number) }

    /// The number of bits that are an index of tables.
    public static let indexBits: UInt64 = 20

    /// A query that no forwarder has made, for code that asks a server directly.
    public init(standalone number: UInt32, of group: GroupID) {
        self.init(group, TableID(standalone: number))
    }
}

/// The addresses of one answer, which are tried together.
public struct TrialID: Hashable, Sendable {
    let id: TableID

    init(_ id: TableID) { self.id = id }

    /// A trial that no forwarder has made.
    public init(standalone number: UInt32) { self.init(TableID(standalone: number)) }
}

/// An order about a trial.
public enum TrialAction: Sendable, Equatable {
    /// Connect to each of these endpoints by TCP, all at once, and report the result of each: see
    /// ``Forwarder/tried(_:_:hasAnswered:at:)``. Send nothing; close each connection at once.
    case begin(TrialID, [Endpoint])
    /// Give up the connections that are not established yet.
    case end(TrialID)
}

/// The content of a query.
public enum Ask: Sendable, Equatable {
    /// The addresses of these names, in one request.
    case addresses([Name], Families)
    case message(MessageQuestion)
}

/// A question in the form of a DNS message.
public struct MessageQuestion: Hashable, Sendable {
    /// The queried name.
    public var name: Name
    /// The queried type.
    public var type: RecordType
    /// The bit DO: the client wants signatures.
    public var dnssecOK: Bool
    /// The bit CD: the client checks signatures itself.
    public var checkingDisabled: Bool

    /// A question, by default with neither bit set.
    public init(name: Name, type: RecordType, dnssecOK: Bool = false, checkingDisabled: Bool = false) {
        self.name = name
        self.type = type
        self.dnssecOK = dnssecOK
        self.checkingDisabled = checkingDisabled
    }
}

/// How a query ended.
public enum Outcome: Sendable, Equatable {
    /// The result of an HTTPDNS service, with the service's reason for a name without addresses, if it gives a reason.
    /// Names that the result does not mention are absent.
    case addresses([NameAddresses], [AbsenceReason] = [])
    /// A DNS message that answers the question, whatever its response code.
    case answer(Answer)
    case failed(Failure)
}

/// Why an attempt failed: `kind` for decisions, `detail` for the log (one line, no query names).
public struct Failure: Error, Sendable, Equatable {
    /// The meaning of the failure for the server, and for the names of the query.
    public enum Kind: Sendable, Equatable {
        case timedOut
        case unreachable
        /// The peer's certificate was refused.
        case untrusted
        /// TLS could not be agreed on: the peer has no TLS, has no version in common, or has ended TLS.
        case insecure
        /// The account or the kind of request was refused (HTTP 401 and 403).
        case unauthorized
        /// HTTP 429: too many requests.
        case tooOften
        /// The server reports that it does not serve the account now; another server may.
        case denied
        /// The answer has another HTTP status, or cannot be decrypted or parsed.
        case badAnswer
        /// The service refuses the names of a request together. It is well: each name is asked alone.
        case refusedTogether
        /// This machine is short of a resource, such as descriptors. No server is to blame, so no other one is asked.
        case here
    }

    /// The basis of decisions.
    public var kind: Kind
    /// One line for the log, without queried names and secrets but the path of a server; see ``publicDetail``.
    public var detail: String
    /// The HTTP status, if there was one.
    public var statusCode: Int?
    /// With `tooOften` and `unauthorized`: the seconds for which the server asks for a pause; nil if it gives no time.
    public var retryAfter: Int?

    /// Each parameter sets the property of the same name.
    public init(_ kind: Kind, _ detail: String, statusCode: Int? = nil, retryAfter: Int? = nil) {
        self.kind = kind
        self.detail = detail
        self.statusCode = statusCode
        self.retryAfter = retryAfter
    }

    /// "No record" from HTTPDNS in a mode in which an attacker may have written the answer.
    static let unproven = Failure(.badAnswer, "no record, which aes and des do not prove")

    /// A redirect, which is not followed: its target was not configured.
    public static func redirect(_ status: Int, to target: String?, retryAfter: Int) -> Failure {
        let words = redirect(status, to: target.map { " to \($0)" } ?? "")
        return Failure(.unauthorized, "\(words); name that server", statusCode: status, retryAfter: retryAfter)
    }

    private static func redirect(_ status: Int, to target: String = "") -> String {
        "HTTP status \(status): a redirect\(target), which is not followed"
    }

    /// The text for clients. The target of a redirect is left out: its path may belong to an account, as the server's
    /// may.
    var publicDetail: String {
        guard let statusCode, (300..<400).contains(statusCode) else { return detail }
        return Self.redirect(statusCode)
    }

    /// A server asks this daemon the question that the daemon asks it.
    static let loop = Failure(.badAnswer, "a loop: the server asks this daemon what it is asked")

    /// An account is not asked for a name: see ``NoRecordBudget``.
    static let noRecordBudget = Failure(.badAnswer, "too many names below the same domain had no record")

    /// Whether the daemon itself is the cause: it is short of a resource, or does not ask an account for the name.
    var isOwn: Bool { kind == .here || self == .noRecordBudget }

    /// RFC 8914: 15 if an account is not asked for the name, 22 if no server answered in time, 14 if this machine is
    /// short of a resource, 23 if the network or the peer made an answer impossible.
    var extendedError: ExtendedError {
        switch kind {
        case .timedOut: .noReachableAuthority
        case .badAnswer where self == .noRecordBudget: .blocked
        case .here: .notReady
        default: .networkError
        }
    }
}

/// A failed lookup at an HTTPDNS account, or a lookup whose names were then sent to the next group of their route.
public struct AbnormalLookup: Sendable, Equatable {
    /// The account's group.
    public var group = GroupID.httpdns
    /// The names of the request.
    public var names: [Name]
    /// The families that the request was for.
    public var families: Families
    /// The server that failed; nil if every server failed, or no server could be asked.
    public var server: Server?
    /// Why the lookup failed; nil if the plan's limit was reached.
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
    /// The group uses another server, after as many failed attempts in a row as the setting allows
    /// (``UpstreamGroup/Choice/inOrder(switchAfter:returnAfterMinutes:)``).
    case switched(GroupID, from: Server, to: Server)
    /// The first server answered again.
    case returned(GroupID, from: Server, to: Server)
    /// A limit is exceeded: further questions get SERVFAIL.
    case refusing(Refusal)
    /// `queriesPerSecond` is exceeded: further names go to the next group of their route, or wait.
    case planExceeded(GroupID)
    /// Too many names below one domain had no record: further names go to the next group of their route, or are
    /// refused.
    case noRecordBudgetSpent(GroupID)
    /// This machine is short of a resource that a query needs, with the reason; logged when the shortage begins.
    case short(String)
    /// A question that this server is asked has come from its address, which is not proven.
    case mayLoop(GroupID, Server)
    /// Private addresses were removed from an answer.
    case privateRefused
    /// A validating client asks for a name of this account, so the group `asked` is asked instead. Logged once.
    case leftToValidators(GroupID, asked: GroupID)
    /// The store cannot be used, with the reason; logged once until it can be used again.
    case sharedCacheOff(String)
    case sharedCacheOn
    /// The store refuses entries, with the reason.
    case sharedCacheTakesNothing(String)
    case sharedCacheTakesAgain
    /// An entry of the store is in the future: the writer's clock or this machine's clock is wrong. Logged once.
    case sharedCacheClock
}

/// Why a question was refused.
public enum Refusal: Sendable, Equatable {
    case tooManyFlights
    case tooManyWaiting
}

/// The source of a client's answer.
public enum Answerer: Sendable, Equatable {
    /// The cache, while the answer was fresh.
    case cache
    /// The cache, with a stale answer, since no server answered in time.
    case stale
    /// The daemon itself, by its rules, the hosts file or its limits.
    case daemon
    /// A server of a group, asked for this question.
    case server(GroupID, Server)
    /// A group that answers by itself.
    case group(GroupID)
    /// The fleet's store, with this group's answer to another daemon.
    case sharedCache(GroupID)
    /// No server could be asked, or none answered: the client gets the failure.
    case noServer
}
