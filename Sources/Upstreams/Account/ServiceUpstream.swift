import Counters
package import Transport

extension StreamUpstream {
    /// An upstream for the servers of an HTTPDNS account.
    package convenience init(loop: EventLoop, access: ServiceAccess) {
        self.init(loop: loop, tallies: UpstreamTallies(), egress: access.egress) { ServerKind($0, access) }
    }

    /// The account's servers are asked with another access from now on; requests under way go on.
    package func renew(_ access: ServiceAccess) { renew(access.egress) { ServerKind($0, access) } }
}
