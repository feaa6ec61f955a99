internal import Base

/// What a service says is wrong with a request, by its own code.
public struct ServiceRefusal: Sendable, Equatable, CustomStringConvertible {
    /// The service's code; empty if it is none that a log can hold.
    public let code: String
    /// The HTTP status.
    public let status: Int
    /// The service's time in seconds since 1970; nil if its answer does not give it.
    public let serviceTime: UInt64?
    public let remedy: ServiceFailure.Remedy
    private let words: String

    /// The longest code, in octets; the services' own have 30 at most.
    static let maximumCode = 48

    /// - Parameter code: The text of the code, as it came.
    init(_ code: [UInt8], status: Int, serviceTime: UInt64? = nil) {
        let isShowable = code.count <= Self.maximumCode && code.allSatisfy { isUnreserved($0) || $0 == 0x20 }
        self.code = isShowable ? String(decoding: code, as: UTF8.self) : ""
        (self.status, self.serviceTime) = (status, serviceTime)
        let known = self.code
        if let row = Self.table.first(where: { $0.codes.contains(known) }) {
            (remedy, words) = (row.remedy, row.words)
        } else {
            remedy = ServiceFailure.status(status).remedy
            words = "of which nothing more is known"
        }
    }

    public var description: String {
        "the service refused the request (\(code.isEmpty ? "HTTP status \(status)" : code)): \(words)"
    }

    /// What the codes of all services mean. A code that is not here means what its HTTP status does.
    private static let table: [(codes: [String], remedy: ServiceFailure.Remedy, words: String)] = [
        (["SignatureExpired"], .clock, "it had expired; is this machine's clock right?"),
        (["InvalidSignature"], .account, "is dnsKey right?"),
        (["InvalidAccount", "AccountNotExists"], .account, "is dnsId right?"),
        (["UnsignedInterfaceDisabled"], .account, "the account takes signed requests alone; give its dnsKey"),
        (["InvalidDuration"], .account, "it is valid for too long; give a shorter authExpirySeconds"),
        (["MissingArgument"], .account, "something is missing in it; is provider right?"),
        (["MethodNotAllowed"], .account, "it is asked by another method there; is provider right?"),
        (["InvalidHost"], .names, "it takes no such name; are the names of domains registered with the account?"),
        (["TooManyHosts"], .names, "there are too many names in it; give a smaller batch"),
        (["ServiceLevelDeny"], .askAnother, "this server does not serve the account now"),
        (["InternalError"], .askAnother, "this server failed"),
    ]
}
