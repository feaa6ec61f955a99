public import DNSWire

/// The clients that a stored answer may be given to.
///
/// A local resolver's answer depends on the DO and CD bits it was asked with (RFC 4035 §3.2); an HTTPDNS address list
/// has no signatures to show or to check, so it answers everyone.
public enum Audience: Hashable, Sendable {
    case everyone
    case those(dnssecOK: Bool, checkingDisabled: Bool)

    /// The audience a client belongs to.
    public init(of question: Question) {
        self = .those(dnssecOK: question.dnssecOK, checkingDisabled: question.checkingDisabled)
    }

    /// All audiences that a client can belong to.
    public static let ofClients = [false, true].flatMap { dnssecOK in
        [false, true].map { Audience.those(dnssecOK: dnssecOK, checkingDisabled: $0) }
    }
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

    struct Flags: OptionSet {
        var rawValue: UInt8
        static let live = Flags(rawValue: 1)
        /// Asked for since it was written: gets a second round before it is evicted.
        static let referenced = Flags(rawValue: 2)
        static let authenticData = Flags(rawValue: 4)
        static let everyone = Flags(rawValue: 8)
        static let dnssecOK = Flags(rawValue: 16)
        static let checkingDisabled = Flags(rawValue: 32)
        /// Not an entry: the rest of the ring up to the end of memory is unused.
        static let padding = Flags(rawValue: 64)
        /// A refresh was already requested, so that no further hit requests it.
        static let refreshing = Flags(rawValue: 128)

        static let audience: Flags = [.everyone, .dnssecOK, .checkingDisabled]
    }

    init() {}

    init(
        _ answer: Answer, nameLength: Int, audience: Audience, isStandIn: Bool = false, teller: UInt16 = 0,
        hash: UInt32, now: UInt32
    ) {
        (self.isStandIn, self.teller) = (isStandIn, teller)
        self.hash = hash
        stored = now
        keep = answer.keep
        bodyLength = UInt16(answer.body.count)
        self.nameLength = UInt8(nameLength)
        flags = [.live, Flags(audience)]
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

    func serves(_ audience: Flags) -> Bool {
        flags.contains(.everyone) || flags.intersection(.audience) == audience
    }

    var head: AnswerHead {
        AnswerHead(
            responseCode: ResponseCode(rawValue: UInt16(responseCode)),
            authenticData: flags.contains(.authenticData),
            answerCount: answerCount, authorityCount: authorityCount, additionalCount: additionalCount,
            extendedErrorLength: extendedErrorLength)
    }
}

extension Entry.Flags {
    /// The audience of the answer.
    var whose: Audience {
        contains(.everyone)
            ? .everyone
            : .those(dnssecOK: contains(.dnssecOK), checkingDisabled: contains(.checkingDisabled))
    }

    init(_ audience: Audience) {
        switch audience {
        case .everyone: self = .everyone
        case .those(let dnssecOK, let checkingDisabled):
            self = []
            if dnssecOK { insert(.dnssecOK) }
            if checkingDisabled { insert(.checkingDisabled) }
        }
    }
}
