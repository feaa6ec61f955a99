public import DNSWire

/// The clients that a stored answer may be given to.
///
/// A resolver's answer depends on the DO and CD bits of its query (RFC 4035 §3.2). An answer without CD was checked, so
/// it serves clients with CD as well; an answer with DO serves clients without DO, less its signatures
/// (``DNSCache/find(_:type:for:at:)``). The reverse is not true. An HTTPDNS address list has no signatures to show or
/// to check, so it serves all clients.
public enum Audience: Hashable, Sendable {
    case everyone
    /// The clients that a resolver's answer to a query with these bits serves; or the clients that set these bits.
    case those(dnssecOK: Bool, checkingDisabled: Bool)
    /// All but clients with DO and without CD, which validate: validating clients would find an address list bogus.
    case exceptValidators
    /// Only the clients that validate, for a name whose addresses all other clients get from HTTPDNS.
    case validators

    /// The audience of a client.
    public init(of question: Question) {
        self = .those(dnssecOK: question.dnssecOK, checkingDisabled: question.checkingDisabled)
    }

    /// All audiences of clients.
    public static let ofClients = [false, true].flatMap { dnssecOK in
        [false, true].map { Audience.those(dnssecOK: dnssecOK, checkingDisabled: $0) }
    }

    /// Whether answers for this audience come from an HTTPDNS account.
    public var isOfAccounts: Bool { self == .everyone || self == .exceptValidators }

    /// Validating clients.
    public static let validating = Audience.those(dnssecOK: true, checkingDisabled: false)

    /// Whether this is the audience of validating clients.
    public var validates: Bool { self == .validating }
}

/// The fixed part of an entry in the ring; `Answer.body` follows it. Trivial, so that it is read and written as a
/// whole.
struct Entry {
    /// Octets from the start of an entry to its body: the fields, padded to a whole stride.
    static var size: Int { MemoryLayout<Entry>.stride }
    static let alignment = 8

    /// The offset of the bucket's next entry in the ring, in units of `alignment`, plus one; 0 ends the chain.
    var next: UInt32 = 0
    var hash: UInt32 = 0
    /// When the entry was stored and for how long it is fresh, both in seconds.
    var stored: UInt32 = 0
    var keep: UInt32 = 0
    var bodyLength: UInt16 = 0
    var nameLength: UInt8 = 0
    var flags: Flags = []
    var answerCount: UInt16 = 0
    var authorityCount: UInt16 = 0
    var additionalCount: UInt16 = 0
    /// Octets of extended errors at the end of the body.
    var extendedErrorLength: UInt16 = 0
    var responseCode: UInt8 = 0
    /// See ``DNSCache/store(_:to:type:for:at:isStandIn:origin:basis:)``.
    var isStandIn = false
    /// The group that answered, as `GroupID.rawValue` + 1; 0 if unknown.
    var origin: UInt16 = 0
    /// See ``Basis``.
    var basis: Basis = 0
    /// The epoch in which the basis was last found right.
    var epoch: UInt32 = 0

    struct Flags: OptionSet {
        var rawValue: UInt8
        static let live = Flags(rawValue: 1)
        /// A client has asked for the entry since it was written, so it gets a second round before it is evicted.
        static let referenced = Flags(rawValue: 2)
        static let authenticData = Flags(rawValue: 4)
        /// The clients that the entry serves, a bit for each kind: without DO and CD, with CD, with DO, and with both.
        static let plain = Flags(rawValue: 8)
        static let checkingDisabled = Flags(rawValue: 16)
        static let dnssecOK = Flags(rawValue: 32)
        static let both = Flags(rawValue: 64)
        /// A refresh was already requested, so no further hit requests it.
        static let refreshing = Flags(rawValue: 128)

        static let audience: Flags = [.plain, .checkingDisabled, .dnssecOK, .both]
    }

    init() {}

    init(
        _ answer: Answer, nameLength: Int, audience: Audience, isStandIn: Bool = false, origin: UInt16 = 0,
        hash: UInt32, now: UInt32, basis: Basis = 0, epoch: UInt32 = 0
    ) {
        (self.isStandIn, self.origin, self.basis, self.epoch) = (isStandIn, origin, basis, epoch)
        self.hash = hash
        stored = now
        keep = answer.keep
        bodyLength = UInt16(answer.body.count)
        self.nameLength = UInt8(nameLength)
        flags = [.live, Flags(serving: audience)]
        if answer.head.authenticData { flags.insert(.authenticData) }
        answerCount = answer.head.answerCount
        authorityCount = answer.head.authorityCount
        additionalCount = answer.head.additionalCount
        extendedErrorLength = answer.head.extendedErrorLength
        responseCode = UInt8(truncatingIfNeeded: answer.head.responseCode.rawValue)
    }

    /// Seconds since the entry was stored; 0 if another queue stored it after the caller read the time. An entry
    /// restored from a snapshot may be older than the machine's start, where the clock begins; it wraps correctly.
    func elapsed(at now: UInt32) -> UInt32 { UInt32(max(0, Int32(bitPattern: now &- stored))) }

    /// Octets of this entry in the ring.
    var extent: Int { Entry.extent(bodyLength: Int(bodyLength)) }

    static func extent(bodyLength: Int) -> Int {
        (size &+ bodyLength &+ (alignment &- 1)) & ~(alignment &- 1)
    }

    /// Whether this is no entry but the unused end of the ring's memory. Each name has at least one octet.
    var isPadding: Bool { nameLength == 0 }

    func serves(_ clients: Flags) -> Bool { flags.isSuperset(of: clients) }

    var head: AnswerHead {
        AnswerHead(
            responseCode: ResponseCode(rawValue: UInt16(responseCode)),
            authenticData: flags.contains(.authenticData),
            answerCount: answerCount, authorityCount: authorityCount, additionalCount: additionalCount,
            extendedErrorLength: extendedErrorLength)
    }
}

extension Entry.Flags {
    /// The clients that an answer for an audience serves unchanged.
    init(serving audience: Audience) {
        switch audience {
        case .everyone: self = .audience
        case .those(dnssecOK: false, checkingDisabled: false): self = [.plain, .checkingDisabled]
        case .those(dnssecOK: false, checkingDisabled: true): self = .checkingDisabled
        case .those(dnssecOK: true, checkingDisabled: false): self = [.dnssecOK, .both]
        case .those(dnssecOK: true, checkingDisabled: true): self = .both
        case .exceptValidators: self = [.plain, .checkingDisabled, .both]
        case .validators: self = .dnssecOK
        }
    }

    /// The clients of an audience, all of which an answer for the audience must serve.
    init(asking audience: Audience) {
        switch audience {
        case .those(dnssecOK: false, checkingDisabled: false): self = .plain
        case .those(dnssecOK: true, checkingDisabled: false): self = .dnssecOK
        default: self.init(serving: audience)
        }
    }

    init(asking question: Question) {
        self = question.dnssecOK ? .dnssecOK : .plain
        if question.checkingDisabled { self = question.dnssecOK ? .both : .checkingDisabled }
    }

    private static let audiences = [.everyone, .exceptValidators, .validators] + Audience.ofClients

    /// The audience of an entry; nil if no entry has these flags.
    var whose: Audience? { Self.audiences.first { intersection(.audience) == Entry.Flags(serving: $0) } }

    /// Whether the answer came from an HTTPDNS account, and has no signatures for any of its clients.
    var areOfAccounts: Bool { isSuperset(of: [.plain, .both]) }

    /// For clients without DO, the clients whose answer, less its signatures, serves them too; nil if no answer does.
    var lender: Entry.Flags? {
        switch self {
        case .plain: [.dnssecOK, .both]
        case .checkingDisabled: .both
        default: nil
        }
    }

    /// Whether an answer that is stored for `new` replaces this one. From HTTPDNS and from a resolver there is at most
    /// one answer each for the same clients.
    func isReplaced(by new: Entry.Flags) -> Bool {
        let old = intersection(.audience)
        return old.isSubset(of: new) || (old.areOfAccounts || new.areOfAccounts) && !old.isDisjoint(with: new)
    }
}

/// A number for the conditions that decided an answer: under other rules the answer is right if these rules give it the
/// same number. With 0 no answer to the question is right, since no server is asked for it.
///
/// The number is stable over restarts. Two different bases have the same number once in four thousand million times.
public typealias Basis = UInt32
