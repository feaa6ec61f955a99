internal import Base
internal import Cryptography
internal import HTTP

/// The list of the service's addresses that start-up servers of Alibaba Cloud give (`/ss`), the same for both versions.
///
/// Chosen: no `region` is named, since each start-up server is of one; the list has no time to live, so it is fetched
/// as often as the documentation asks for at least. The signature is the plain MD5 of the documentation's own vector,
/// where its text speaks of HMAC-MD5.
struct AlibabaList {
    private let id: UInt32
    private let digest: SecretDigest

    /// The documentation's longest time between two requests.
    static let minutes = 480
    /// For how many seconds a request is valid; the documentation allows 30 to 300.
    static let validity: UInt64 = 300
    /// Octets of the random number, written as twice as many digits; the documentation allows 8 to 16 of them.
    static let nonceLength = 8

    init(_ signing: Signing) throws(RequestError) {
        id = signing.id
        digest = try SecretDigest(signing.secret)
    }

    func request(host: String, at unixSeconds: UInt64) throws(RequestError) -> [UInt8] {
        let random = randomBytes(Self.nonceLength)
        var nonce: [UInt8] = []
        Hexadecimal.append(random.span, to: &nonce)
        return try request(nonce: nonce, host: host, at: unixSeconds)
    }

    func request(nonce: [UInt8], host: String, at unixSeconds: UInt64) throws(RequestError) -> [UInt8] {
        var request = Array("GET /\(id)/ss?n=".utf8)
        request.append(contentsOf: nonce)
        let subject = request.count - nonce.count..<request.count
        try digest.appendEnd(of: subject, until: unixSeconds &+ Self.validity, as: "&s=", host: host, to: &request)
        return request
    }

    /// Reads `{"service_ip":[…],"service_ipv6":[…]}`.
    func parse(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration {
        try response.checkStatus()
        var list = ServiceConfiguration(addresses: [], ttlMinutes: Self.minutes)
        let body = response.body.span
        var reader = JSONReader()
        try reader.object(body) { reader, body, member throws(ServiceFailure) in
            if isSame(body, member, as: "service_ip") || isSame(body, member, as: "service_ipv6") {
                try reader.array(body) { reader, body, _ throws(ServiceFailure) in
                    try list.add(IPAddress(parsing: body.extracting(try reader.string(body))))
                }
            } else {
                try reader.skip(body)
            }
        }
        try reader.end(body)
        guard !list.addresses.isEmpty else { throw .unparsable }
        return list
    }
}
