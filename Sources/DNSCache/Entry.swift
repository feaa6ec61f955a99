public import DNSWire

/// The clients that a stored answer may be given to.
///
/// A resolver's answer depends on the DO and CD bits it was asked with (RFC 4035 §3.2). One that was got without CD was
/// checked, so it serves clients with CD as well; one that was got with DO serves those without, less its signatures
/// (``DNSCache/find(_:type:for:at:)``). Neither holds the other way round. An HTTPDNS address list has no signatures to
/// show or to check, so it answers everyone.
public enum Audience: Hashable, Sendable {
    case everyone
    /// Whom a resolver's answer serves that was got with these bits; or the clients that set them.
    case those(dnssecOK: Bool, checkingDisabled: Bool)
    /// Everyone but clients with DO and without CD, which validate: they would find an address list bogus.
    case exceptValidators
    /// These clients alone, of a name whose addresses all others have from HTTPDNS.
    case validators

    /// The audience a client belongs to.
    public init(of question: Question) {
        self = .those(dnssecOK: question.dnssecOK, checkingDisabled: question.checkingDisabled)
    }

    /// All audiences that a client can belong to.
    public static let ofClients = [false, true].flatMap { dnssecOK in
        [false, true].map { Audience.those(dnssecOK: dnssecOK, checkingDisabled: $0) }
    }

    /// Whether such answers come from an HTTPDNS account.
    public var isOfAccounts: Bool { self == .everyone || self == .exceptValidators }

    /// Clients that validate.
    public static let validating = Audience.those(dnssecOK: true, checkingDisabled: false)

    /// Whether it is that of clients that validate.
    public var validates: Bool { self == .validating }
}

/// The fixed part of an entry in the ring; `Answer.body` follows it. Trivial, so that it is read and written whole.
struct Entry {
    /// Octets from the beginning of an entry to its body: the fields, padded to a whole stride.
    static var size: Int { MemoryLayout<Entry>.stride }
    static let alignment = 8

    /// The next entry of the same bucket: its place in the ring in units of `alignment`, plus one; 0 ends the chain.
    var next: UInt32 = 0
    var hash: UInt32 = 0
    /// When it was stored and for how long it is fresh, both in seconds.
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
    /// See ``DNSCache/store(_:to:type:for:at:isStandIn:teller:)``.
    var isStandIn = false
    /// The group that has answered, as `GroupID.rawValue` + 1; 0: it is not known.
    var teller: UInt16 = 0
    /// See ``Basis``.
    var basis: Basis = 0
    /// The epoch in which the basis was found right the last time.
    var epoch: UInt32 = 0

    struct Flags: OptionSet {
        var rawValue: UInt8
        static let live = Flags(rawValue: 1)
        /// Asked for since it was written: gets a second round before it is evicted.
        static let referenced = Flags(rawValue: 2)
        static let authenticData = Flags(rawValue: 4)
        /// The clients it serves, a bit for each: without DO and CD, with CD, with DO, and with both.
        static let plain = Flags(rawValue: 8)
        static let checkingDisabled = Flags(rawValue: 16)
        static let dnssecOK = Flags(rawValue: 32)
        static let both = Flags(rawValue: 64)
        /// A refresh was already requested, so that no further hit requests it.
        static let refreshing = Flags(rawValue: 128)

        static let audience: Flags = [.plain, .checkingDisabled, .dnssecOK, .both]
    }

    init() {}

    init(
        _ answer: Answer, nameLength: Int, audience: Audience, isStandIn: Bool = false, teller: UInt16 = 0,
        hash: UInt32, now: UInt32, basis: Basis = 0, epoch: UInt32 = 0
    ) {
        (self.isStandIn, self.teller, self.basis, self.epoch) = (isStandIn, teller, basis, epoch)
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

    /// Seconds since it was stored; 0 if another queue stored it after the caller took the time. An entry restored from
    /// a snapshot may be older than the machine's start, where the clock begins: its difference wraps correctly.
    func elapsed(at now: UInt32) -> UInt32 { UInt32(max(0, Int32(bitPattern: now &- stored))) }

    /// Octets this entry takes in the ring.
    var extent: Int { Entry.extent(bodyLength: Int(bodyLength)) }

    static func extent(bodyLength: Int) -> Int {
        (size &+ bodyLength &+ (alignment &- 1)) & ~(alignment &- 1)
    }

    /// Not an entry: the rest of the ring up to the end of memory is unused. Each name has an octet at least.
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
    /// The clients that an answer for an audience serves as it is.
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

    /// The clients of an audience, all of which an answer must serve to be found for it.
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

    /// Whether the answer came from an HTTPDNS account, and has no signatures for whomever it serves.
    var areOfAccounts: Bool { isSuperset(of: [.plain, .both]) }

    /// What an answer must serve so that, less its signatures, it serves these clients without DO; nil for others.
    var lender: Entry.Flags? {
        switch self {
        case .plain: [.dnssecOK, .both]
        case .checkingDisabled: .both
        default: nil
        }
    }

    /// Whether an answer that is stored for `new` takes the place of this one. Both from HTTPDNS and from a resolver there
    /// is one answer at most for the same clients.
    func isReplaced(by new: Entry.Flags) -> Bool {
        let old = intersection(.audience)
        return old.isSubset(of: new) || (old.areOfAccounts || new.areOfAccounts) && !old.isDisjoint(with: new)
    }
}
