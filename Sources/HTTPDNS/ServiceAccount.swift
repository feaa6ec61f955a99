public import DNSWire
public import HTTP

/// One account of an HTTPDNS service, in its provider's protocol: targets of requests out, answers in. It owns the credentials,
/// and knows no server and no clock.
///
/// Not `Sendable`: ciphers are used again, so an account belongs to one queue.
public protocol ServiceAccount: AnyObject {
    /// Whether a request is valid for a time only, so that a refusal may be due to the clock.
    var hasExpiry: Bool { get }

    /// Appends the target of a GET request, path and query, that asks the service about all of `names`.
    /// - Parameters:
    ///   - names: One to ``Provider/Facts/namesPerRequest`` names, no two alike.
    ///   - family: One family at least.
    ///   - unixSeconds: The time of day by the service's clock, from which a request's validity is counted.
    func appendTarget(
        _ names: [Name], family: Families, at unixSeconds: UInt64, to request: inout [UInt8]
    ) throws(RequestError)

    /// Reads the service's answer to a request of the same `names` and `family`.
    /// - Returns: In the order of `names`, at least one result; a name that the answer does not mention is absent. At
    ///   most ``ServiceProtocol/addressesPerFamily`` addresses a family, in the service's order and each once.
    func parse(_ response: HTTPResponse, names: [Name], family: Families) throws(ServiceFailure) -> [NameAddresses]

    /// The same, and in the service's own words why it has no address; what it does not say is absent.
    func parse(
        _ response: HTTPResponse, names: [Name], family: Families, reasons: inout [AbsenceReason]
    ) throws(ServiceFailure) -> [NameAddresses]

    /// By what the service finds the requests of this account when it is asked about them (`trace`); nil: by nothing.
    var sessionID: String? { get }

    /// Writes the target of a request for the list of the service's addresses.
    /// - Parameter unixSeconds: As above.
    func listTarget(at unixSeconds: UInt64) throws(RequestError) -> [UInt8]

    /// Reads the service's answer to a request for that.
    func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration
}

extension ServiceAccount {
    /// A service that gives no reasons.
    public func parse(
        _ response: HTTPResponse, names: [Name], family: Families, reasons: inout [AbsenceReason]
    ) throws(ServiceFailure) -> [NameAddresses] {
        try parse(response, names: names, family: family)
    }

    public var sessionID: String? { nil }
}
