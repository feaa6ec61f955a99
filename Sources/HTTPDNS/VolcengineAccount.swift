internal import Base
public import DNSWire
public import HTTP

/// An account of Volcengine's HTTPDNS (`/resolve`, `/svc_meta`).
///
/// Chosen, where the documentation is silent: a name is asked for alone, as no form of an answer to several is
/// documented; without `type` the service gives both families. Of `svc_meta` those entries count that are addresses: a
/// name would have to be looked up before names can be.
public final class VolcengineAccount: ServiceAccount {
    public var hasExpiry: Bool { true }

    /// What stands between the name and the time, and behind the time, for each choice of families.
    private let afterName: [UInt8]
    private let afterTime: (ipv4: [UInt8], ipv6: [UInt8], both: [UInt8])
    /// The values that are signed beside the name and the time, in order; what is not sent is signed as an empty one.
    private let signed: (ipv4: [[UInt8]], ipv6: [[UInt8]], both: [[UInt8]])
    private let listStart: [UInt8]
    private let signedOfList: [[UInt8]]
    private let validity: UInt64
    private let digest: SecretDigest
    private let namesPerRequest = Provider.volcengine.facts.namesPerRequest

    init(_ signing: Signing) throws(RequestError) {
        let (id, route) = ("\(signing.id)", signing.routeIp?.description ?? "")
        let digest = try SecretDigest(signing.secret)
        func octets(_ text: String) -> [UInt8] { Array(text.utf8) }
        func sent(_ type: String) -> [UInt8] {
            octets((type.isEmpty ? "" : "&type=\(type)") + (route.isEmpty ? "" : "&ip=\(route)"))
        }
        func signed(_ type: String) -> [[UInt8]] { digest.sorted([id, type, route].map(octets)) }
        afterName = octets("&account_id=\(id)&timestamp=")
        afterTime = (ipv4: sent("A"), ipv6: sent("AAAA"), both: sent(""))
        self.signed = (ipv4: signed("A"), ipv6: signed("AAAA"), both: signed(""))
        let version = "0"
        listStart = octets("GET /svc_meta?account_id=\(id)&svc_meta_ts=\(version)&timestamp=")
        signedOfList = digest.sorted([id, version].map(octets))
        validity = signing.validity
        self.digest = digest
    }

    public func request(
        _ names: [Name], family: Families, host: String, at unixSeconds: UInt64
    ) throws(RequestError) -> [UInt8] {
        let (afterTime, signed) =
            switch family {
            case .ipv4: (afterTime.ipv4, signed.ipv4)
            case .ipv6: (afterTime.ipv6, signed.ipv6)
            default: (afterTime.both, signed.both)
            }
        var request: [UInt8] = []
        request.reserveCapacity(names.reduce(0) { $0 + $1.wire.count } + host.utf8.count + 384)
        request.append("GET /resolve?domain=")
        let name = request.count
        try request.appendNames(names, most: namesPerRequest)
        let nameEnd = request.count
        request.append(contentsOf: afterName)
        let time = appendTime(unixSeconds, to: &request)
        request.append(contentsOf: afterTime)
        try digest.appendEnd(ofSorted: signed, with: [name..<nameEnd, time], host: host, to: &request)
        return request
    }

    /// Appends when a request of this moment ends, in milliseconds since 1970.
    /// - Returns: The place of that.
    private func appendTime(_ unixSeconds: UInt64, to request: inout [UInt8]) -> Range<Int> {
        let start = request.count
        request.appendDecimal((unixSeconds &+ validity) &* 1000)
        return start..<request.count
    }

    /// Reads `{"host":…,"ips":[…],"ttl":…}`, with the addresses of both families in one list.
    public func parse(
        _ response: HTTPResponse, names: [Name], family: Families
    ) throws(ServiceFailure) -> [NameAddresses] {
        try response.checkStatus()
        let body = response.body.span
        var reader = JSONReader()
        var answer = JSONAnswer(names, family)
        var (name, list) = (Range<Int>?.none, AddressList())
        try reader.object(body) { reader, body, member throws(ServiceFailure) in
            if isSame(body, member, as: "host") {
                name = try reader.string(body)
            } else if isSame(body, member, as: "ips") {
                try answer.read(&reader, body, into: &list, of: .both)
            } else if isSame(body, member, as: "ttl") {
                try answer.readTTL(&reader, body, into: &list)
            } else {
                try reader.skip(body)
            }
        }
        try reader.end(body)
        guard let name else { throw .unparsable }
        list.finish()
        try answer.add(body, name, list, list)
        return try answer.results()
    }

    public func configurationRequest(host: String, at unixSeconds: UInt64) throws(RequestError) -> [UInt8] {
        var request = listStart
        let time = appendTime(unixSeconds, to: &request)
        try digest.appendEnd(ofSorted: signedOfList, with: [time], host: host, to: &request)
        return request
    }

    /// Reads `{"svc_meta":{"main_domains":[…],"backup_domains":[…]},"ts":…,"update_interval_min":…}`.
    public func parseConfiguration(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration {
        try response.checkStatus()
        let body = response.body.span
        var lists: (main: [IPAddress], backup: [IPAddress]) = ([], [])
        var configuration = ServiceConfiguration(addresses: [], ttlMinutes: ServiceConfiguration.defaultTTLMinutes)
        var reader = JSONReader()
        try reader.object(body) { reader, body, member throws(ServiceFailure) in
            if isSame(body, member, as: "svc_meta") {
                try reader.object(body) { reader, body, member throws(ServiceFailure) in
                    if isSame(body, member, as: "main_domains") {
                        lists.main = try Self.addresses(&reader, body)
                    } else if isSame(body, member, as: "backup_domains") {
                        lists.backup = try Self.addresses(&reader, body)
                    } else {
                        try reader.skip(body)
                    }
                }
            } else if isSame(body, member, as: "update_interval_min") {
                let minutes = try reader.integer(body, maximum: ServiceConfiguration.maximumTTLMinutes)
                configuration.ttlMinutes = max(minutes, 1)
            } else {
                try reader.skip(body)
            }
        }
        try reader.end(body)
        for address in lists.main + lists.backup { try configuration.add(address) }
        return configuration
    }

    private static func addresses(
        _ reader: inout JSONReader, _ text: Span<UInt8>
    ) throws(ServiceFailure) -> [IPAddress] {
        var addresses: [IPAddress] = []
        try reader.array(text) { reader, text, _ throws(ServiceFailure) in
            if let address = IPAddress(parsing: text.extracting(try reader.string(text))) { addresses.append(address) }
        }
        return addresses
    }
}
