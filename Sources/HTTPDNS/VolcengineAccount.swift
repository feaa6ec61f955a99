internal import Base
public import DNSWire
public import HTTP

/// An account of Volcengine's HTTPDNS (`/resolve`, `/svc_meta`).
///
/// Decisions where the documentation is silent: each request has one name, since no form of an answer to several names
/// is documented. Without `type` the service gives both families. Of `svc_meta` only addresses are used: a name in
/// `svc_meta` would have to be looked up, which needs the service.
public final class VolcengineAccount: ServiceAccount {
    private let id: [UInt8]
    private let signing: Signing

    init(_ signing: Signing) {
        id = Array("\(signing.id)".utf8)
        self.signing = signing
    }

    public var validity: UInt64 { signing.validity }

    public func appendTarget(
        _ names: [Name], family: Families, at unixSeconds: UInt64, to request: inout [UInt8]
    ) throws(RequestError) {
        var name: [UInt8] = []
        try name.appendNames(names, to: .volcengine)
        let time = time(at: unixSeconds)
        var type: [UInt8] = []
        type.append(family.choose("A", "AAAA", both: ""))
        request.append("/resolve?domain=")
        request += name
        request.append("&account_id=", id)
        request.append("&timestamp=", time)
        request.append("&type=", type)
        request.append("&ip=", signing.route)
        // A parameter that is not sent is signed as an empty value.
        signing.appendSignature(of: [name, id, time, type, signing.route, signing.secret], to: &request)
    }

    /// The end of the validity of a request made now, in milliseconds since 1970.
    private func time(at unixSeconds: UInt64) -> [UInt8] {
        Array("\((unixSeconds &+ signing.validity) &* 1000)".utf8)
    }

    /// Reads `{"host":…,"ips":[…],"ttl":…}`, with the addresses of both families in one list.
    public func parse(
        _ response: HTTPResponse, names: [Name], family: Families, reasons: inout [AbsenceReason]
    ) throws(ServiceFailure) -> [NameAddresses] {
        let json = try response.json()
        var answer = JSONAnswer(names, family)
        let list = try answer.list(json, JSONText.root, "ips", of: .both)
        try answer.add(json, json.string(json.member("host")), list, list)
        return try answer.results()
    }

    public func listTarget(at unixSeconds: UInt64) throws(RequestError) -> [UInt8] {
        let (version, time) = ([UInt8(ascii: "0")], time(at: unixSeconds))
        var target = Array("/svc_meta?account_id=".utf8) + id
        target.append("&svc_meta_ts=", version)
        target.append("&timestamp=", time)
        signing.appendSignature(of: [id, version, time, signing.secret], to: &target)
        return target
    }

    /// Reads `{"svc_meta":{"main_domains":[…],"backup_domains":[…]},"ts":…,"update_interval_min":…}`.
    public func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration {
        let json = try response.json()
        var configuration = ServiceConfiguration(addresses: [], ttlMinutes: ServiceConfiguration.defaultTTLMinutes)
        let minutes = try json.member("update_interval_min")
        if !json.isMissing(minutes) {
            let most = ServiceConfiguration.maximumTTLMinutes
            configuration.ttlMinutes = max(1, try json.integer(minutes, maximum: most))
        }
        let domains = try json.member("svc_meta")
        for member in ["main_domains", "backup_domains"] as [StaticString] {
            for element in try json.elements(of: json.member(member, of: domains)) {
                if let address = try json.address(element) { try configuration.add(address) }
            }
        }
        return configuration
    }
}
