public import DNSWire
public import HTTP

/// One account of an HTTPDNS service, in its provider's protocol: requests out, answers in. It owns the credentials,
/// and knows no server and no clock.
///
/// Not `Sendable`: ciphers and buffers are used again, so an account belongs to one queue.
public protocol ServiceAccount: AnyObject {
    /// Whether a request is valid for a time only, so that a refusal may be due to the clock.
    var hasExpiry: Bool { get }

    /// Writes one HTTP/1.1 request that asks the service about all of `names` and leaves the connection open.
    /// - Parameters:
    ///   - names: One to ``Provider/Facts/namesPerRequest`` names, no two alike.
    ///   - family: One family at least.
    ///   - host: The value of the Host field: a server name or an address, with `:PORT` unless that is the scheme's
    ///     default. A bare IPv6 address is put in brackets.
    ///   - unixSeconds: The time of day by the service's clock, from which a request's validity is counted.
    func request(
        _ names: [Name], family: Families, host: String, at unixSeconds: UInt64
    ) throws(RequestError) -> [UInt8]

    /// Reads the service's answer to a request of the same `names` and `family`.
    /// - Returns: In the order of `names`, at least one result; a name that the answer does not mention is absent. At
    ///   most ``ServiceProtocol/addressesPerFamily`` addresses a family, in the service's order and each once.
    func parse(_ response: HTTPResponse, names: [Name], family: Families) throws(ServiceFailure) -> [NameAddresses]

    /// Writes one HTTP/1.1 request for the list of the service's addresses; parameters as above.
    /// - Throws: ``RequestError/noList`` if the service has none.
    func configurationRequest(host: String, at unixSeconds: UInt64) throws(RequestError) -> [UInt8]

    /// Reads the service's answer to a ``configurationRequest(host:at:)``.
    func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration
}
