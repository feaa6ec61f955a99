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

    private let id: String
    private let routeIp: String
    private let validity: UInt64
    private let digest: SecretDigest
    private let namesPerRequest = Provider.volcengine.facts.namesPerRequest

    init(_ signing: Signing) throws(RequestError) {
        id = String(signing.id)
        routeIp = signing.routeIp?.description ?? ""
        validity = signing.validity
        digest = try SecretDigest(signing.secret)
    }

    public func request(
        _ names: [Name], family: Families, host: String, at unixSeconds: UInt64
    ) throws(RequestError) -> [UInt8] {
        var domain: [UInt8] = []
        try domain.appendNames(names, most: namesPerRequest)
        let type =
            switch family {
            case .ipv4: "A"
            case .ipv6: "AAAA"
            default: ""
            }
        let expiry = expiry(unixSeconds)
        var request: [UInt8] = []
        request.reserveCapacity(domain.count + host.utf8.count + 320)
        request.append("GET /resolve?domain=")
        request.append(contentsOf: domain)
        request.append("&account_id=\(id)&timestamp=\(expiry)")
        if !type.isEmpty { request.append("&type=\(type)") }
        if !routeIp.isEmpty { request.append("&ip=\(routeIp)") }
        request.append("&sign=")
        // What is not sent is signed as an empty value.
        digest.append(
            ofSorted: [domain] + [id, expiry, type, routeIp].map { Array($0.utf8) }, to: &request)
        try request.appendRequestEnd(host: host)
        return request
    }

    /// When a request of this moment ends, in milliseconds since 1970.
    private func expiry(_ unixSeconds: UInt64) -> String { "\((unixSeconds &+ validity) &* 1000)" }

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
        let expiry = expiry(unixSeconds)
        let version = "0"
        var request = Array("GET /svc_meta?account_id=\(id)&svc_meta_ts=\(version)&timestamp=\(expiry)&sign=".utf8)
        digest.append(ofSorted: [id, version, expiry].map { Array($0.utf8) }, to: &request)
        try request.appendRequestEnd(host: host)
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
