import Configuration
import Control
import Counters
import DNSCache
import Forwarding
import Transport
import Upstreams

/// What the parts of the daemon tell who watches it.
extension Observer.Sources {
    init(
        _ resolver: Resolver, _ streams: StreamServer, _ datagrams: [DatagramListener], _ cache: DNSCache,
        logLinesLost: @escaping @Sendable () -> UInt64
    ) {
        self.init(
            describe: { done in
                resolver.loop.submit {
                    var overview = Overview(cache.statistics)
                    resolver.describe(&overview)
                    streams.loop.submit { [overview] in
                        var overview = overview
                        overview.limits.tcpClients = streams.openClients
                        overview.limits.clients = streams.counters
                        done(overview)
                    }
                }
            },
            queues: [{ resolver.loop.submit($0) }, { streams.loop.submit($0) }]
                + datagrams.map { listener in { @Sendable turned in listener.ping(turned) } },
            doors: datagrams.map(\.tally) + [streams.tally], resolver: resolver.tally,
            logLinesLost: logLinesLost)
    }
}

extension Resolver {
    /// On the loop.
    fileprivate func describe(_ overview: inout Overview) {
        overview.groups = forwarder.groupOverviews.map { group in
            Overview.Group(group, encryption: group.id == .httpdns ? settings.httpdns?.credential.name : nil)
        }
        overview.isOpen = isOpen
        overview.counters = forwarder.counters
        overview.limits.flights = forwarder.flightsUnderWay
        overview.limits.refusedForRoom = queue.refused
        overview.limits.mismatches = carriers.mismatches
        overview.upstreams = carriers.tallies.figures
    }
}
