internal import Base

/// The common parts of accounts that sign their requests.
struct Signing {
    let id: UInt32
    let digest: SecretDigest
    /// The client subnet as text; empty: there is none.
    let route: [UInt8]
    /// Seconds for which a request is valid.
    let validity: UInt64

    init(id: UInt32, secret: [UInt8], routeIp: IPAddress?, validity: UInt64) throws(RequestError) {
        (self.id, digest, self.validity) = (id, try SecretDigest(secret), validity)
        route = Array((routeIp?.description ?? "").utf8)
    }
}
