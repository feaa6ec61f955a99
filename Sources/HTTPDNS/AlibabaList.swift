internal import Base
internal import Cryptography
internal import HTTP

/// The list of the service's addresses that start-up servers of Alibaba Cloud give (`/ss`), the same for both versions.
///
/// Decisions: no `region` is named, since each start-up server belongs to a single region. The list has no TTL, so it
/// is fetched as often as the documentation requires at least. The signature is the plain MD5 of the documentation's
/// own vector, although its text mentions HMAC-MD5.
struct AlibabaList {
    private let signing: Signing

    /// The documentation's longest time between two requests.
    static let minutes = 480
    /// For how many seconds a request is valid. The documentation allows 30 to 300.
    static let validity: UInt64 = 300
    /// Octets of the random number, which is written as hexadecimal. The documentation allows 8 to 16 digits.
    static let nonceLength = 8

    init(_ signing: Signing) { self.signing = signing }

    func target(at unixSeconds: UInt64) -> [UInt8] {
        var nonce: [UInt8] = []
        Hexadecimal.append(randomBytes(Self.nonceLength).span, to: &nonce)
        return target(nonce: nonce, at: unixSeconds)
    }

    func target(nonce: [UInt8], at unixSeconds: UInt64) -> [UInt8] {
        var target = Array("/\(signing.id)/ss?n=".utf8) + nonce
        let subject = target.count - nonce.count..<target.count
        signing.appendEnd(of: subject, until: unixSeconds &+ Self.validity, as: "&s=", to: &target)
        return target
    }

    /// Reads `{"service_ip":[…],"service_ipv6":[…]}`.
    func parse(_ response: HTTPResponse) throws(ServiceFailure) -> ServiceConfiguration {
        try ServiceConfiguration(response.json(), ["service_ip", "service_ipv6"], ttlMinutes: Self.minutes)
    }
}
