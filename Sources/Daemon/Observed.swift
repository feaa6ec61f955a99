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
        overview.encryption = settings.httpdns?.credential.name
        overview.isHTTPOnly = settings.httpdns?.httpOnly ?? false
        let account = forwarder.overview(of: .httpdns)
        overview.services = account.servers
        overview.currentService = account.servers.firstIndex { $0.server == account.current } ?? 0
        overview.account = account.counters
        let fallback = forwarder.overview(of: .fallback)
        overview.resolvers = fallback.servers
        overview.local = fallback.counters
        overview.isOpen = isOpen
        overview.counters = forwarder.counters
        overview.limits.flights = forwarder.flightsUnderWay
        overview.limits.refusedForRoom = queue.refused
        overview.limits.mismatches = carriers.mismatches
        overview.upstreams = carriers.tallies.durations
        overview.connections = carriers.tallies.connections
    }
}
