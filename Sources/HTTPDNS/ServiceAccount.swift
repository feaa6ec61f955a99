public import DNSWire
public import HTTP

/// One account of an HTTPDNS service, in its provider's protocol: targets of requests out, answers in. The account owns
/// the credentials, and knows no server and no clock.
///
/// Not `Sendable`: ciphers are reused, so an account belongs to one queue.
public protocol ServiceAccount: AnyObject {
    /// Seconds for which a request is valid, so that a refusal may be due to the clock; 0: for all time.
    var validity: UInt64 { get }

    /// Appends the target of a GET request, path and query, that asks the service about all of `names`.
    /// - Parameters:
    ///   - names: The names to ask, from one to ``Provider/Facts/namesPerRequest``, without repetitions.
    ///   - family: The address families to ask for, at least one.
    ///   - unixSeconds: The time of day by the service's clock, from which a request's validity is counted.
    func appendTarget(
        _ names: [Name], family: Families, at unixSeconds: UInt64, to request: inout [UInt8]
    ) throws(RequestError)

    /// Reads the service's answer to a request of the same `names` and `family`.
    /// - Parameter reasons: Gets the service's own reasons for absent addresses, as far as the answer has them.
    /// - Returns: At least one result, in the order of `names`. A name that the answer does not mention is absent. At
    ///   most ``ServiceProtocol/addressesPerFamily`` addresses a family, in the service's order and each once.
    func parse(
        _ response: HTTPResponse, names: [Name], family: Families, reasons: inout [AbsenceReason]
    ) throws(ServiceFailure) -> [NameAddresses]

    /// The service's identifier of this account's requests, for inquiries (`trace`); nil: requests have no identifier.
    var sessionID: String? { get }

    /// Writes the target of a request for the list of the service's addresses.
    /// - Parameter unixSeconds: The time of day by the service's clock.
    func listTarget(at unixSeconds: UInt64) throws(RequestError) -> [UInt8]

    /// Reads the service's answer to a request for the list.
    func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration
}

extension ServiceAccount {
    /// Reads an answer without the service's reasons.
    public func parse(
        _ response: HTTPResponse, names: [Name], family: Families
    ) throws(ServiceFailure) -> [NameAddresses] {
        var reasons: [AbsenceReason] = []
        return try parse(response, names: names, family: family, reasons: &reasons)
    }

    public var sessionID: String? { nil }
}
