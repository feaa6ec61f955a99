public import Base
public import DNSWire

/// What the shell knows a client by. The forwarder gives each number back once, in the reply.
public typealias ClientNumber = Int

/// What the shell is asked to do. Actions are carried out in order; each outcome comes back through a door of
/// `Forwarder`, at any later time, or never: deadlines are the forwarder's own.
public enum Action {
    /// Give each client the answer, rendered for its own id, letters' case and size.
    case reply(Few<ClientNumber>, Answer, Reply.Age)
    /// Look these names up at the HTTPDNS server with this place in `dnsIp`, in one request.
    case askService(ServiceRequest, server: Int, names: [Name], families: Families)
    /// Nobody waits for this request any more.
    case cancelService(ServiceRequest)
    /// Ask the local resolver with this place in its list.
    case askResolver(ResolverQuery, server: Int, overTCP: Bool, ResolverQuestion)
    case cancelResolver(ResolverQuery)
    /// Something an operator may want to know; said once for each change.
    case report(Event)
    /// A lookup went otherwise than it should (`enableReport`); said for each.
    case reportLookup(AbnormalLookup)
}

/// A request under way to an HTTPDNS server.
public struct ServiceRequest: Hashable, Sendable {
    let id: TableID

    init(id: TableID) { self.id = id }

    /// A request that no forwarder made, for whoever asks a server straight.
    public init(standalone number: UInt32) { id = TableID(standalone: number) }
}

/// A query under way to a local resolver.
public struct ResolverQuery: Hashable, Sendable {
    let id: TableID

    init(id: TableID) { self.id = id }

    /// A query that no forwarder made, for whoever asks a resolver straight.
    public init(standalone number: UInt32) { id = TableID(standalone: number) }
}

/// What a local resolver is asked.
public struct ResolverQuestion: Hashable, Sendable {
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

/// The address families that are looked up (`addressType`).
public struct Families: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let ipv4 = Families(rawValue: 1)
    public static let ipv6 = Families(rawValue: 2)
    public static let both: Families = [.ipv4, .ipv6]
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
        /// No answer in time.
        case timedOut
        /// No connection, or it broke.
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
    /// With `tooOften`: how many seconds the server wants to be left alone; nil if it does not say.
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

/// A lookup at HTTPDNS that failed, or whose names the local resolver had to be asked for.
public struct AbnormalLookup: Sendable, Equatable {
    public var names: [Name]
    public var families: Families
    /// The place in `dnsIp` that failed; nil when the name was given up, as every server failed or none was to be asked,
    /// and for a server that is no longer in the list.
    public var server: Int?
    /// Why; nil when the plan's limit was reached.
    public var failure: Failure?
    /// Milliseconds from the request to its failure; from the first question when the name was given up.
    public var spend: Int
    /// The local resolver was asked instead.
    public var fellBack: Bool
}

/// How an HTTPDNS request ended.
public enum ServiceOutcome: Sendable, Equatable {
    /// HTTP 200 and a body that parses. Names it says nothing of are absent.
    case answered([NameAddresses])
    case failed(Failure)
}

/// How a local resolver's query ended.
public enum ResolverOutcome: Sendable, Equatable {
    case answered(Answer)
    /// TC was set: the same is to be asked over TCP.
    case truncated
    case failed(Failure)
}

/// A change of state worth one line in the log.
public enum Event: Sendable, Equatable {
    case serviceFailing(server: Int, Failure)
    case serviceAnswersAgain(server: Int)
    /// `retryTimesBeforeSwitchServer` was reached.
    case serviceSwitched(from: Int, to: Int)
    /// The first server answered again.
    case serviceReturned(from: Int)
    case resolverFailing(server: Int, Failure)
    case resolverAnswersAgain(server: Int)
    /// Questions are past a limit and get SERVFAIL.
    case refusing(Refusal)
    /// `queriesPerSecond` is reached: the names beyond it go to the local resolver, or wait with `httpOnly`.
    case planExceeded
    /// Too many names below one domain had no record: new ones go to the local resolver, or are refused with `httpOnly`.
    case noRecordBudgetSpent
    /// Private addresses were taken out of an answer.
    case privateRefused
}

/// Why a question was not taken on.
public enum Refusal: Sendable, Equatable {
    case tooManyFlights
    case tooManyWaiting
}
