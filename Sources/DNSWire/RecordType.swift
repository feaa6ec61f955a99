/// A record or query type (RFC 1035 §3.2.2 and its successors); any value is allowed (RFC 3597).
public struct RecordType: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let a = RecordType(rawValue: 1)
    public static let ns = RecordType(rawValue: 2)
    public static let md = RecordType(rawValue: 3)
    public static let mf = RecordType(rawValue: 4)
    public static let cname = RecordType(rawValue: 5)
    public static let soa = RecordType(rawValue: 6)
    public static let mb = RecordType(rawValue: 7)
    public static let mg = RecordType(rawValue: 8)
    public static let mr = RecordType(rawValue: 9)
    public static let ptr = RecordType(rawValue: 12)
    public static let hinfo = RecordType(rawValue: 13)
    public static let minfo = RecordType(rawValue: 14)
    public static let mx = RecordType(rawValue: 15)
    public static let txt = RecordType(rawValue: 16)
    public static let rp = RecordType(rawValue: 17)
    public static let afsdb = RecordType(rawValue: 18)
    public static let rt = RecordType(rawValue: 21)
    public static let sig = RecordType(rawValue: 24)
    public static let px = RecordType(rawValue: 26)
    public static let aaaa = RecordType(rawValue: 28)
    public static let nxt = RecordType(rawValue: 30)
    public static let srv = RecordType(rawValue: 33)
    public static let naptr = RecordType(rawValue: 35)
    public static let kx = RecordType(rawValue: 36)
    public static let dname = RecordType(rawValue: 39)
    public static let opt = RecordType(rawValue: 41)
    public static let ds = RecordType(rawValue: 43)
    public static let rrsig = RecordType(rawValue: 46)
    public static let nsec = RecordType(rawValue: 47)
    public static let dnskey = RecordType(rawValue: 48)
    public static let nsec3 = RecordType(rawValue: 50)
    public static let svcb = RecordType(rawValue: 64)
    public static let https = RecordType(rawValue: 65)
    public static let tsig = RecordType(rawValue: 250)
    public static let ixfr = RecordType(rawValue: 251)
    public static let axfr = RecordType(rawValue: 252)
    public static let any = RecordType(rawValue: 255)
    public static let caa = RecordType(rawValue: 257)

    private static let mnemonics: [(UInt16, String)] = [
        (1, "A"), (2, "NS"), (3, "MD"), (4, "MF"), (5, "CNAME"), (6, "SOA"), (7, "MB"), (8, "MG"), (9, "MR"),
        (12, "PTR"), (13, "HINFO"), (14, "MINFO"), (15, "MX"), (16, "TXT"), (17, "RP"), (18, "AFSDB"), (21, "RT"),
        (26, "PX"), (28, "AAAA"), (33, "SRV"), (35, "NAPTR"), (36, "KX"), (39, "DNAME"), (41, "OPT"), (43, "DS"),
        (44, "SSHFP"), (46, "RRSIG"), (47, "NSEC"), (48, "DNSKEY"), (50, "NSEC3"), (51, "NSEC3PARAM"), (52, "TLSA"),
        (64, "SVCB"), (65, "HTTPS"), (99, "SPF"), (249, "TKEY"), (250, "TSIG"), (251, "IXFR"), (252, "AXFR"),
        (255, "ANY"), (256, "URI"), (257, "CAA"),
    ]

    /// The types that have a mnemonic here, and of which there can be records to look up.
    public static var named: [RecordType] {
        mnemonics.map { RecordType(rawValue: $0.0) }.filter { $0.refusal == nil && $0 != .any }
    }

    /// The code by which a question for this type is refused; nil: the type may be asked.
    ///
    /// REFUSED for zone transfers. FORMERR for the other types of 128 to 254 and for OPT: they have no data to look up
    /// (RFC 6895 §3.1), and resolvers answer FORMERR as well, with which a client could make a healthy resolver seem to
    /// fail.
    public var refusal: ResponseCode? {
        switch rawValue {
        case Self.axfr.rawValue, Self.ixfr.rawValue: .refused
        case Self.opt.rawValue, 128..<Self.any.rawValue: .formErr
        default: nil
        }
    }

    /// A type from its mnemonic in any case, or from `TYPE123` (RFC 3597 §5); nil for any other text.
    public init?(parsing text: String) {
        let upper = text.uppercased()
        let known = RecordType.mnemonics.first { $0.1 == upper }?.0
        guard let value = known ?? number(in: upper, after: "TYPE") else { return nil }
        self.init(rawValue: value)
    }

    /// The mnemonic, or `TYPE123` (RFC 3597 §5).
    public var description: String { RecordType.mnemonics.first { $0.0 == rawValue }?.1 ?? "TYPE\(rawValue)" }
}

/// A record or query class (RFC 1035 §3.2.4).
public struct RecordClass: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let `in` = RecordClass(rawValue: 1)

    /// The mnemonic, or `CLASS123` (RFC 3597 §5).
    public var description: String {
        switch rawValue {
        case 1: "IN"
        case 3: "CH"
        case 4: "HS"
        case 254: "NONE"
        case 255: "ANY"
        default: "CLASS\(rawValue)"
        }
    }
}
