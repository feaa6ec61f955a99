internal import Base

/// What the accounts that sign their requests have in common.
struct Signing {
    let id: UInt32
    let secret: [UInt8]
    let routeIp: IPAddress?
    /// Seconds for which a request is valid.
    let validity: UInt64

    /// The client subnet as text; empty if there is none.
    var route: [UInt8] { Array((routeIp?.description ?? "").utf8) }
}
