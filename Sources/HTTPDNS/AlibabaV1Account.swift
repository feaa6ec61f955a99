internal import Base
public import DNSWire
public import HTTP

/// An account of Alibaba Cloud's HTTPDNS (EMAS), version 1: `/ACCOUNT/sign_d` for one name, `/ACCOUNT/sign_resolve` for
/// several.
///
/// An answer to several names speaks of each in an object of its own, or in one for each family (`type` 1 and 28), and
/// IPv6 addresses may stand in `ips` or in `ipsv6`; both is read.
public final class AlibabaV1Account: ServiceAccount {
    public var hasExpiry: Bool { true }

    private let start: [UInt8]
    private let route: [UInt8]
    private let validity: UInt64
    private let digest: SecretDigest
    private let list: AlibabaList
    private let namesPerRequest = Provider.alibabaV1.facts.namesPerRequest

    init(_ signing: Signing) throws(RequestError) {
        start = Array("GET /\(signing.id)/sign_".utf8)
        route = signing.routeParameter
        validity = signing.validity
        digest = try SecretDigest(signing.secret)
        list = try AlibabaList(signing)
    }

    public func request(
        _ names: [Name], family: Families, host: String, at unixSeconds: UInt64
    ) throws(RequestError) -> [UInt8] {
        var request: [UInt8] = []
        request.reserveCapacity(names.reduce(0) { $0 + $1.wire.count } + host.utf8.count + 320)
        request.append(contentsOf: start)
        request.append(names.count > 1 ? "resolve?host=" : "d?host=")
        let first = request.count
        try request.appendNames(names, most: namesPerRequest)
        let subject = first..<request.count
        switch family {
        case .ipv4: request.append("&query=4")
        case .ipv6: request.append("&query=6")
        default: request.append("&query=4,6")
        }
        request.append(contentsOf: route)
        try digest.appendEnd(of: subject, until: unixSeconds &+ validity, as: "&s=", host: host, to: &request)
        return request
    }

    public func parse(
        _ response: HTTPResponse, names: [Name], family: Families
    ) throws(ServiceFailure) -> [NameAddresses] {
        try response.checkStatus()
        let body = response.body.span
        var reader = JSONReader()
        var answer = JSONAnswer(names, family)
        var results = Results(count: names.count)
        if names.count == 1 {
            try results.readName(&reader, body, &answer)
        } else {
            try reader.object(body) { reader, body, member throws(ServiceFailure) in
                guard isSame(body, member, as: "dns") else {
                    try reader.skip(body)
                    return
                }
                try reader.array(body) { reader, body, _ throws(ServiceFailure) in
                    try results.readName(&reader, body, &answer)
                }
            }
        }
        try reader.end(body)
        for (index, lists) in results.lists.enumerated() {
            if let lists { answer.set(index, lists.ipv4, lists.ipv6) }
        }
        return try answer.results()
    }

    public func configurationRequest(host: String, at unixSeconds: UInt64) throws(RequestError) -> [UInt8] {
        try list.request(host: host, at: unixSeconds)
    }

    public func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration {
        try list.parse(response)
    }
}

/// What is said of each name, in one object or in two.
private struct Results {
    var lists: [(ipv4: AddressList, ipv6: AddressList)?]

    init(count: Int) { lists = Array(repeating: nil, count: count) }

    /// Reads `{"host":…,"ips":[…],"ipsv6":[…],"ttl":…,"type":…}`.
    mutating func readName(
        _ reader: inout JSONReader, _ text: Span<UInt8>, _ answer: inout JSONAnswer
    ) throws(ServiceFailure) {
        var name: Range<Int>?
        var list = AddressList()
        try reader.object(text) { reader, text, member throws(ServiceFailure) in
            if isSame(text, member, as: "host") {
                name = try reader.string(text)
            } else if isSame(text, member, as: "ips") {
                try answer.read(&reader, text, into: &list, of: .both)
            } else if isSame(text, member, as: "ipsv6") {
                try answer.read(&reader, text, into: &list, of: .ipv6)
            } else if isSame(text, member, as: "ttl") {
                try answer.readTTL(&reader, text, into: &list)
            } else {
                try reader.skip(text)
            }
        }
        guard let name else { throw .unparsable }
        list.finish()
        let index = try answer.index(text, name)
        guard let before = lists[index] else {
            lists[index] = (list, list)
            return
        }
        // The second object may only speak of the other family.
        guard before.ipv4.ipv4.isEmpty || list.ipv4.isEmpty, before.ipv6.ipv6.isEmpty || list.ipv6.isEmpty else {
            throw .unparsable
        }
        lists[index] = (before.ipv4.ipv4.isEmpty ? list : before.ipv4, before.ipv6.ipv6.isEmpty ? list : before.ipv6)
    }
}
