internal import Base
public import DNSWire
public import HTTP

/// An account of Baidu's HTTPDNS (`/v4/resolve`).
///
/// Decisions where the documentation is silent: a family without an address, whose `msg` is anything but `ok`, has no
/// record. Neither has a family that is missing in the object of a name. The service's addresses come with the answer
/// for any name. The request has the service's own name, so that it needs no name of the operator, and the result for
/// the name is ignored. The addresses have no TTL.
public final class BaiduAccount: ServiceAccount {
    private let start: [UInt8]
    private let signing: Signing

    init(_ signing: Signing) {
        start = Array("/v4/resolve?account_id=\(signing.id)&dn=".utf8)
        self.signing = signing
    }

    public var validity: UInt64 { signing.validity }

    public func appendTarget(
        _ names: [Name], family: Families, at unixSeconds: UInt64, to request: inout [UInt8]
    ) throws(RequestError) {
        request += start
        let first = request.count
        try request.appendNames(names, to: .baidu)
        let subject = first..<request.count
        request.append(family.choose("&type=ipv4", "&type=ipv6", both: "&type=dual_stack"))
        request.append("&ip=", signing.route)
        signing.appendEnd(of: subject, until: unixSeconds &+ signing.validity, as: "&sign=", to: &request)
    }

    /// Reads `{"msg":"ok","data":{NAME:{"ipv4":{"ip":[…],"ttl":…},"ipv6":{…}}},"timestamp":…}`.
    public func parse(
        _ response: HTTPResponse, names: [Name], family: Families, reasons: inout [AbsenceReason]
    ) throws(ServiceFailure) -> [NameAddresses] {
        let json = try response.json(("msg", "ok"))
        var answer = JSONAnswer(names, family)
        for name in try json.members(of: json.member("data")) {
            let ipv4 = try answer.list(json, json.member("ipv4", of: name), "ip", of: .ipv4)
            let ipv6 = try answer.list(json, json.member("ipv6", of: name), "ip", of: .ipv6)
            try answer.add(json, json.name(name), ipv4, ipv6)
        }
        return try answer.results()
    }

    public func listTarget(at unixSeconds: UInt64) throws(RequestError) -> [UInt8] {
        var target = start + Array(Provider.baidu.facts.certificateName.utf8)
        let subject = start.count..<target.count
        target.append("&type=dual_stack&alt_server_ip=true")
        signing.appendEnd(of: subject, until: unixSeconds &+ signing.validity, as: "&sign=", to: &target)
        return target
    }

    /// Reads `{"msg":…,"data":…,"serverip":{"ipv4":[…],"ipv6":[…]}}`.
    public func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration {
        let json = try response.json()
        do throws(ServiceFailure) {
            return try ServiceConfiguration(
                json, ["ipv4", "ipv6"], of: json.member("serverip"), ttlMinutes: ServiceConfiguration.defaultTTLMinutes)
        } catch {
            // The service may report why there are no addresses.
            _ = try response.json(("msg", "ok"))
            throw error
        }
    }
}
