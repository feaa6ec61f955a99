internal import Base

/// A service's error, by its own code.
public struct ServiceRefusal: Sendable, Equatable {
    /// The service's code; empty if the code is unsuitable for a log.
    public let code: String
    /// The HTTP status.
    public let status: Int
    /// The service's time in seconds since 1970; nil: the answer does not contain the time.
    public let serviceTime: UInt64?
    public let remedy: ServiceFailure.Remedy
    /// The row of ``table``; nil: the code is unknown.
    private let row: Int?

    /// The longest code, in octets. The services' own codes have 30 at most.
    static let maximumCode = 48

    /// - Parameter code: The text of the code, as received.
    init(_ code: [UInt8], status: Int, serviceTime: UInt64? = nil) {
        let isShowable = code.count <= Self.maximumCode && code.allSatisfy { isUnreserved($0) || $0 == 0x20 }
        self.code = isShowable ? String(decoding: code, as: UTF8.self) : ""
        (self.status, self.serviceTime) = (status, serviceTime)
        let known = self.code
        row = Self.table.firstIndex { $0.codes.contains(known) }
        remedy = row.map { Self.table[$0].remedy } ?? ServiceFailure.status(status).remedy
    }

    /// One line for an operator, with the key that is likely wrong. A code with a secret in it is left out.
    func words(_ keys: AccountKeys) -> String {
        let what = code.isEmpty || !keys.mayShow(code) ? "HTTP status \(status)" : code
        return "the service refused the request (\(what)): \(row.map { Self.table[$0].words(keys) } ?? unknown(keys))"
    }

    private func unknown(_ keys: AccountKeys) -> String {
        remedy == .account ? keys.areRight(keys.proof) : "of which nothing more is known"
    }

    private typealias Row = (
        codes: [String], remedy: ServiceFailure.Remedy, words: @Sendable (AccountKeys) -> String
    )

    /// The meaning of the codes of all services. A code that is not listed means the same as its HTTP status.
    private static let table: [Row] = [
        (["SignatureExpired"], .clock, { _ in "it had expired; is this machine's clock right?" }),
        (["InvalidSignature"], .account, { $0.areRight([.dnsKey]) }),
        (["InvalidAccount", "AccountNotExists"], .account, { $0.areRight([.dnsId]) }),
        (
            ["UnsignedInterfaceDisabled"], .account,
            { "the account takes signed requests alone; \($0.areRight([.dnsKey]))" }
        ),
        (
            ["InvalidDuration"], .account,
            { "it is valid for too long; is this machine's clock right, and \($0[.authExpirySeconds]) short enough?" }
        ),
        (["MissingArgument"], .account, { "something is missing in it; \($0.areRight($0.encryption + [.provider]))" }),
        (["MethodNotAllowed"], .account, { "it is asked by another method there; \($0.areRight([.provider]))" }),
        (
            ["InvalidHost"], .names,
            { "it takes no such name; are the names of \($0[.names]) registered with the account?" }
        ),
        (["TooManyHosts"], .fewerNames, { "there are too many names in it; give a smaller \($0[.batch])" }),
        (
            ["ServiceLevelDeny"], .askAnother,
            { "this server does not serve the account now; is its plan used up, or \($0[.dnsId]) wrong?" }
        ),
        (["InternalError"], .askAnother, { _ in "this server failed" }),
    ]
}
