internal import Base
public import DNSWire
public import HTTP

/// An account of Alibaba Cloud's HTTPDNS (EMAS), version 1: `/ACCOUNT/sign_d` for one name, `/ACCOUNT/sign_resolve` for
/// several.
///
/// An answer to several names has an object for each name, or for each name and family (`type` 1 and 28), and IPv6
/// addresses may be in `ips` or in `ipsv6`; both forms are read.
public final class AlibabaV1Account: ServiceAccount {
    private let start: [UInt8]
    private let signing: Signing
    private let list: AlibabaList

    init(_ signing: Signing) {
        start = Array("/\(signing.id)/sign_".utf8)
        self.signing = signing
        list = AlibabaList(signing)
    }

    public var validity: UInt64 { signing.validity }

    public func appendTarget(
        _ names: [Name], family: Families, at unixSeconds: UInt64, to request: inout [UInt8]
    ) throws(RequestError) {
        request += start
        request.append(names.count > 1 ? "resolve?host=" : "d?host=")
        let first = request.count
        try request.appendNames(names, to: .alibabaV1)
        let subject = first..<request.count
        request.append(family.choose("&query=4", "&query=6", both: "&query=4,6"))
        request.append("&ip=", signing.route)
        signing.appendEnd(of: subject, until: unixSeconds &+ signing.validity, as: "&s=", to: &request)
    }

    /// Reads `{"dns":[…]}` if several names were asked. For one name, the body is that list's element:
    /// `{"host":…,"ips":[…],"ipsv6":[…],"ttl":…,"type":…}`.
    public func parse(
        _ response: HTTPResponse, names: [Name], family: Families, reasons: inout [AbsenceReason]
    ) throws(ServiceFailure) -> [NameAddresses] {
        let json = try response.json()
        var answer = JSONAnswer(names, family)
        func read(_ name: Int) throws(ServiceFailure) {
            let list = try answer.list(json, name, "ips", of: .both, and: "ipsv6")
            try answer.add(json, json.string(json.member("host", of: name)), list, list, joins: true)
        }
        if names.count == 1 {
            try read(JSONText.root)
        } else {
            for name in try json.elements(of: json.member("dns")) { try read(name) }
        }
        return try answer.results()
    }

    public func listTarget(at unixSeconds: UInt64) throws(RequestError) -> [UInt8] { list.target(at: unixSeconds) }

    public func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration {
        try list.parse(response)
    }
}
