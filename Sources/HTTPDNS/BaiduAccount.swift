internal import Base
public import DNSWire
public import HTTP

/// An account of Baidu's HTTPDNS (`/v4/resolve`).
///
/// Chosen, where the documentation is silent: a family whose `msg` is anything but `ok`, and which has no address, has
/// no record; and so has a family that is not mentioned beside a name that is.
public final class BaiduAccount: ServiceAccount {
    public var hasExpiry: Bool { true }

    private let start: [UInt8]
    private let route: [UInt8]
    private let validity: UInt64
    private let digest: SecretDigest
    private let namesPerRequest = Provider.baidu.facts.namesPerRequest

    init(_ signing: Signing) throws(RequestError) {
        start = Array("GET /v4/resolve?account_id=\(signing.id)&dn=".utf8)
        route = signing.routeParameter
        validity = signing.validity
        digest = try SecretDigest(signing.secret)
    }

    public func request(
        _ names: [Name], family: Families, host: String, at unixSeconds: UInt64
    ) throws(RequestError) -> [UInt8] {
        var request: [UInt8] = []
        request.reserveCapacity(names.reduce(0) { $0 + $1.wire.count } + host.utf8.count + 320)
        request.append(contentsOf: start)
        try request.appendNames(names, most: namesPerRequest)
        let subject = start.count..<request.count
        switch family {
        case .ipv4: request.append("&type=ipv4")
        case .ipv6: request.append("&type=ipv6")
        default: request.append("&type=dual_stack")
        }
        request.append(contentsOf: route)
        try digest.appendEnd(of: subject, until: unixSeconds &+ validity, as: "&sign=", host: host, to: &request)
        return request
    }

    /// Reads `{"msg":"ok","data":{NAME:{"ipv4":{"ip":[…],"ttl":…},"ipv6":{…}}},"timestamp":…}`.
    public func parse(
        _ response: HTTPResponse, names: [Name], family: Families
    ) throws(ServiceFailure) -> [NameAddresses] {
        try response.checkStatus()
        let body = response.body.span
        var reader = JSONReader()
        var answer = JSONAnswer(names, family)
        var (message, time): (Range<Int>?, UInt64?)
        try reader.object(body) { reader, body, member throws(ServiceFailure) in
            if isSame(body, member, as: "msg") {
                message = try reader.string(body)
            } else if isSame(body, member, as: "timestamp") {
                time = UInt64(try reader.integer(body, maximum: .max))
            } else if isSame(body, member, as: "data") {
                try reader.object(body) { reader, body, name throws(ServiceFailure) in
                    try Self.readName(&reader, body, name, &answer)
                }
            } else {
                try reader.skip(body)
            }
        }
        try reader.end(body)
        guard let message else { throw .unparsable }
        guard isSame(body, message, as: "ok") else {
            throw .refused(ServiceRefusal(Array(body, message), status: response.status, serviceTime: time))
        }
        return try answer.results()
    }

    private static func readName(
        _ reader: inout JSONReader, _ text: Span<UInt8>, _ name: Range<Int>, _ answer: inout JSONAnswer
    ) throws(ServiceFailure) {
        var lists = (AddressList(), AddressList())
        try reader.object(text) { reader, text, member throws(ServiceFailure) in
            if isSame(text, member, as: "ipv4") {
                lists.0 = try answer.list(&reader, text, addresses: "ip", of: .ipv4)
            } else if isSame(text, member, as: "ipv6") {
                lists.1 = try answer.list(&reader, text, addresses: "ip", of: .ipv6)
            } else {
                try reader.skip(text)
            }
        }
        try answer.add(text, name, lists.0, lists.1)
    }

    public func configurationRequest(host: String, at unixSeconds: UInt64) throws(RequestError) -> [UInt8] {
        throw .noList
    }

    public func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration {
        throw .unparsable
    }
}
