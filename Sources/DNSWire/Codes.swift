import Base

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
    /// A DNAME makes the name longer than 255 octets (RFC 6672 §2.2).
    public static let yxDomain = ResponseCode(rawValue: 6)
    public static let badVers = ResponseCode(rawValue: 16)
    public static let badCookie = ResponseCode(rawValue: 23)

    private static let mnemonics: [(UInt16, String)] = [
        (0, "NOERROR"), (1, "FORMERR"), (2, "SERVFAIL"), (3, "NXDOMAIN"), (4, "NOTIMP"), (5, "REFUSED"),
        (6, "YXDOMAIN"), (9, "NOTAUTH"), (16, "BADVERS"), (23, "BADCOOKIE"),
    ]

    /// The text that dig prints.
    public var description: String {
        ResponseCode.mnemonics.first { $0.0 == rawValue }?.1 ?? "RCODE\(rawValue)"
    }

    /// The code from its description, in any case; nil for any other text, and for a number of more than 12 bits.
    public init?(parsing text: String) {
        let upper = text.uppercased()
        let known = ResponseCode.mnemonics.first { $0.1 == upper }?.0
        guard let value = known ?? number(in: upper, after: "RCODE"), value < 1 << 12 else { return nil }
        self.init(rawValue: value)
    }

    /// The code for a header alone: a code that needs the upper bits of an OPT record becomes SERVFAIL, since its lower
    /// four bits are another code (BADVERS would become NOERROR).
    var inHeaderAlone: ResponseCode { rawValue < 16 ? self : .servFail }
}

/// The number in a text such as `TYPE123`; nil if the text has another form, or if the number has more than 16 bits.
func number(in text: String, after prefix: String) -> UInt16? {
    guard text.hasPrefix(prefix), text.utf8.dropFirst(prefix.utf8.count).allSatisfy(isDigit) else { return nil }
    return UInt16(text.dropFirst(prefix.utf8.count))
}

/// A reason beside the response code (RFC 8914 §4, and the IANA registry).
public struct ExtendedError: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let other = ExtendedError(rawValue: 0)
    public static let staleAnswer = ExtendedError(rawValue: 3)
    public static let dnssecBogus = ExtendedError(rawValue: 6)
    public static let notReady = ExtendedError(rawValue: 14)
    public static let blocked = ExtendedError(rawValue: 15)
    public static let filtered = ExtendedError(rawValue: 17)
    public static let prohibited = ExtendedError(rawValue: 18)
    public static let staleNXDomainAnswer = ExtendedError(rawValue: 19)
    public static let notAuthoritative = ExtendedError(rawValue: 20)
    public static let notSupported = ExtendedError(rawValue: 21)
    public static let noReachableAuthority = ExtendedError(rawValue: 22)
    public static let networkError = ExtendedError(rawValue: 23)

    /// The registry's words for the codes that a resolver is likely to send.
    private static let words: [UInt16: String] = [
        0: "Other", 3: "Stale Answer", 4: "Forged Answer", 6: "DNSSEC Bogus", 13: "Cached Error", 14: "Not Ready",
        15: "Blocked", 16: "Censored", 17: "Filtered", 18: "Prohibited", 19: "Stale NXDomain Answer",
        20: "Not Authoritative", 21: "Not Supported", 22: "No Reachable Authority", 23: "Network Error",
        24: "Invalid Data",
    ]

    /// The registry's words, or `EDE 123` for a code without words.
    public var description: String { Self.words[rawValue] ?? "EDE \(rawValue)" }
}
