/// The result of a query: the header's 4 bits (RFC 1035 §4.1.1), extended to 12 by an OPT record (RFC 6891 §6.1.3).
public struct ResponseCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let noError = ResponseCode(rawValue: 0)
    public static let formErr = ResponseCode(rawValue: 1)
    public static let servFail = ResponseCode(rawValue: 2)
    public static let nxDomain = ResponseCode(rawValue: 3)
    public static let notImp = ResponseCode(rawValue: 4)
    public static let refused = ResponseCode(rawValue: 5)
    public static let yxDomain = ResponseCode(rawValue: 6)
    public static let notAuth = ResponseCode(rawValue: 9)
    public static let badVers = ResponseCode(rawValue: 16)
    public static let badCookie = ResponseCode(rawValue: 23)

    private static let mnemonics: [(ResponseCode, String)] = [
        (.noError, "NOERROR"), (.formErr, "FORMERR"), (.servFail, "SERVFAIL"), (.nxDomain, "NXDOMAIN"),
        (.notImp, "NOTIMP"), (.refused, "REFUSED"), (.yxDomain, "YXDOMAIN"), (.notAuth, "NOTAUTH"),
        (.badVers, "BADVERS"), (.badCookie, "BADCOOKIE"),
    ]

    /// The text that dig prints.
    public var description: String {
        ResponseCode.mnemonics.first { $0.0 == self }?.1 ?? "RCODE\(rawValue)"
    }

    /// From the description, in any case; nil: anything else, or more than 12 bits.
    public init?(parsing text: String) {
        let upper = text.uppercased()
        if let known = ResponseCode.mnemonics.first(where: { $0.1 == upper }) {
            self = known.0
        } else if upper.hasPrefix("RCODE"), upper.utf8.dropFirst(5).allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
            let value = UInt16(upper.dropFirst(5)), value < 1 << 12
        {
            self.init(rawValue: value)
        } else {
            return nil
        }
    }

    /// The code for a header alone: a code that needs the upper bits of an OPT record becomes SERVFAIL, since its lower
    /// four bits are another code (BADVERS would become NOERROR).
    var inHeaderAlone: ResponseCode { rawValue < 16 ? self : .servFail }
}

/// A reason beside the response code (RFC 8914 §4, and the IANA registry).
public struct ExtendedError: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let other = ExtendedError(rawValue: 0)
    public static let staleAnswer = ExtendedError(rawValue: 3)
    public static let forgedAnswer = ExtendedError(rawValue: 4)
    public static let dnssecBogus = ExtendedError(rawValue: 6)
    public static let cachedError = ExtendedError(rawValue: 13)
    public static let notReady = ExtendedError(rawValue: 14)
    public static let blocked = ExtendedError(rawValue: 15)
    public static let censored = ExtendedError(rawValue: 16)
    public static let filtered = ExtendedError(rawValue: 17)
    public static let prohibited = ExtendedError(rawValue: 18)
    public static let staleNXDomainAnswer = ExtendedError(rawValue: 19)
    public static let notAuthoritative = ExtendedError(rawValue: 20)
    public static let notSupported = ExtendedError(rawValue: 21)
    public static let noReachableAuthority = ExtendedError(rawValue: 22)
    public static let networkError = ExtendedError(rawValue: 23)
    public static let invalidData = ExtendedError(rawValue: 24)

    /// The registry's words for the codes named here, else `EDE 123`.
    public var description: String {
        switch self {
        case .other: "Other"
        case .staleAnswer: "Stale Answer"
        case .forgedAnswer: "Forged Answer"
        case .dnssecBogus: "DNSSEC Bogus"
        case .cachedError: "Cached Error"
        case .notReady: "Not Ready"
        case .blocked: "Blocked"
        case .censored: "Censored"
        case .filtered: "Filtered"
        case .prohibited: "Prohibited"
        case .staleNXDomainAnswer: "Stale NXDomain Answer"
        case .notAuthoritative: "Not Authoritative"
        case .notSupported: "Not Supported"
        case .noReachableAuthority: "No Reachable Authority"
        case .networkError: "Network Error"
        case .invalidData: "Invalid Data"
        default: "EDE \(rawValue)"
        }
    }
}
