public import Base
public import DNSWire

/// What the shell knows a client by. The forwarder gives each number back once, in the reply.
public typealias ClientNumber = Int

/// What the shell is asked to do. Actions are carried out in order; the outcome of each query comes back through
/// `Forwarder.settle`, at any later time, or never: deadlines are the forwarder's own.
public enum Action {
    /// Give each client the answer, rendered for its own id, letters' case and size.
    case reply(SmallList<ClientNumber>, Answer, Reply.Age)
    /// Put this to a server of the query's group.
    case ask(QueryID, Server, Ask)
    /// The server is silent, or the network is another: put the same to it once more, on another way than before (a
    /// fresh connection, another id and port). The first answer counts, to whichever it is.
    case askAgain(QueryID)
    /// Nobody waits for this query any more.
    case cancel(QueryID)
    /// Something an operator may want to know; said once for each change.
    indirect case report(Event)
    /// A lookup at an HTTPDNS account went otherwise than it should (`enableReport`); said for each.
    indirect case reportLookup(AbnormalLookup)
}

/// A query under way to a server of a group.
public struct QueryID: Hashable, Sendable {
    public let group: GroupID
    let id: TableID

    init(_ group: GroupID, _ id: TableID) { (self.group, self.id) = (group, id) }

    /// A query that no forwarder made, for whoever asks a server straight.
    public init(standalone number: UInt32, of group: GroupID) {
        self.init(group, TableID(standalone: number))
    }
}

/// What a server is asked.
public enum Ask: Sendable, Equatable {
    /// The addresses of these names, in one request.
    case addresses([Name], Families)
    case message(MessageQuestion)
}

/// A question that is put as a DNS message.
public struct MessageQuestion: Hashable, Sendable {
    public var name: Name
    public var type: RecordType
    public var dnssecOK: Bool
    public var checkingDisabled: Bool

    public init(name: Name, type: RecordType, dnssecOK: Bool = false, checkingDisabled: Bool = false) {
        self.name = name
        self.type = type
        self.dnssecOK = dnssecOK
        self.checkingDisabled = checkingDisabled
    }
}

/// How a query ended.
public enum Outcome: Sendable, Equatable {
    /// What an HTTPDNS service said, in an answer that could be read. Names it says nothing of are absent.
    case addresses([NameAddresses])
    /// A DNS message that answers the question, whatever its response code.
    case answer(Answer)
    case failed(Failure)
}

/// The address families that are looked up (`addressType`).
public struct Families: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let ipv4 = Families(rawValue: 1)
    public static let ipv6 = Families(rawValue: 2)
    public static let both: Families = [.ipv4, .ipv6]

    /// The family that questions of a type are for.
    init?(of type: RecordType) {
        switch type {
        case .a: self = .ipv4
        case .aaaa: self = .ipv6
        default: return nil
        }
    }
}

/// What HTTPDNS said of one family of a name.
public enum FamilyAddresses: Sendable, Equatable {
    case addresses([IPAddress], ttl: UInt32)
    case noRecord
    case notAsked
}

/// What HTTPDNS said of a name.
public struct NameAddresses: Sendable, Equatable {
    public var name: Name
    public var ipv4: FamilyAddresses
    public var ipv6: FamilyAddresses

    public init(name: Name, ipv4: FamilyAddresses, ipv6: FamilyAddresses) {
        self.name = name
        self.ipv4 = ipv4
        self.ipv6 = ipv6
    }

    var hasAddresses: Bool {
        if case .addresses = ipv4 { return true }
        if case .addresses = ipv6 { return true }
        return false
    }
}

/// Why an attempt failed, for the decision (`kind`) and for the log (`detail`: one line, no secrets, no query names).
public struct Failure: Sendable, Equatable {
    public enum Kind: Sendable, Equatable {
        case timedOut
        case unreachable
        /// The peer's certificate or TLS was refused.
        case untrusted
        /// HTTP 401: the account is refused.
        case unauthorized
        /// HTTP 429: asked too often.
        case tooOften
        /// Another status, or an answer that does not decrypt or parse.
        case badAnswer
    }

    public var kind: Kind
    public var detail: String
    /// The HTTP status, where there was one.
    public var statusCode: Int?
    /// With `tooOften` and `unauthorized`: how many seconds the server wants to be left alone; nil if it does not say.
    public var retryAfter: Int?

    public init(_ kind: Kind, _ detail: String, statusCode: Int? = nil, retryAfter: Int? = nil) {
        self.kind = kind
        self.detail = detail
        self.statusCode = statusCode
        self.retryAfter = retryAfter
    }

    /// "No record" of HTTPDNS's, which may be somebody else's word.
    static let unproven = Failure(.badAnswer, "no record, which aes and des do not prove")

    /// RFC 8914: 22 when nobody answered, 23 when the network or the peer made it impossible.
    var extendedError: ExtendedError { kind == .timedOut ? .noReachableAuthority : .networkError }
}

/// A lookup at an HTTPDNS account that failed, or whose names the next group of their route had to be asked for.
public struct AbnormalLookup: Sendable, Equatable {
    public var names: [Name]
    public var families: Families
    /// Who failed; nil when the name was given up, as every server failed or none was to be asked.
    public var server: Server?
    /// Why; nil when the plan's limit was reached.
    public var failure: Failure?
    /// Milliseconds from the request to its failure; from the first question when the name was given up.
    public var spend: Int
    /// The next group was asked instead.
    public var fellBack: Bool
}

/// A change of state worth one line in the log.
public enum Event: Sendable, Equatable {
    case failing(GroupID, Server, Failure)
    case answersAgain(GroupID, Server)
    /// So many attempts failed in a row (``UpstreamGroup/Choice/inOrder(switchAfter:returnAfterMinutes:)``).
    case switched(GroupID, from: Server, to: Server)
    /// The first server answered again.
    case returned(GroupID, from: Server, to: Server)
    /// Questions are past a limit and get SERVFAIL.
    case refusing(Refusal)
    /// `queriesPerSecond` is reached: the names beyond it go to the next group of their route, or wait.
    case planExceeded(GroupID)
    /// Too many names below one domain had no record: new ones go to the next group of their route, or are refused.
    case noRecordBudgetSpent(GroupID)
    /// Private addresses were taken out of an answer.
    case privateRefused
}

/// Why a question was not taken on.
public enum Refusal: Sendable, Equatable {
    case tooManyFlights
    case tooManyWaiting
}
