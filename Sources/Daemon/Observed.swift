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
        let services = settings.httpdns == nil ? [] : service?.servers ?? []
        overview.services = zip(services, forwarder.serviceHealth).map { .init(endpoint: $0, health: $1) }
        overview.currentService = forwarder.currentService
        overview.resolvers = zip(local.servers, forwarder.resolverHealth).map { .init(endpoint: $0, health: $1) }
        overview.isOpen = isOpen
        overview.counters = forwarder.counters
        overview.limits.flights = forwarder.underWay.flights
        overview.limits.refusedForRoom = queue.refused
        overview.limits.mismatches = local.mismatches
        overview.upstreams = local.tallies.durations
        overview.connections = local.tallies.connections
    }
}
