import Configuration
import Control
import Counters
import DNSCache
import Forwarding
import Transport
import Upstreams

/// What the daemon's parts give to the observer.
extension Observer.Sources {
    init(
        _ forwarderLoop: ForwarderLoop, _ streams: StreamServer, _ datagrams: [DatagramListener], _ cache: DNSCache,
        logLinesLost: @escaping @Sendable () -> UInt64
    ) {
        self.init(
            describe: { done in
                forwarderLoop.loop.submit {
                    var overview = Overview(cache.statistics)
                    forwarderLoop.describe(&overview)
                    streams.loop.submit { [overview] in
                        var overview = overview
                        overview.limits.tcpClients = streams.openClients
                        overview.limits.clients = streams.counters
                        done(overview)
                    }
                }
            },
            queues: [{ forwarderLoop.loop.submit($0) }, { streams.loop.submit($0) }]
                + datagrams.map { listener in { @Sendable turned in listener.ping(turned) } },
            doors: datagrams.map(\.tally) + [streams.tally], forwarderLoop: forwarderLoop.tally,
            logLinesLost: logLinesLost)
    }
}

extension ForwarderLoop {
    /// Adds what the loop knows; called on the loop.
    fileprivate func describe(_ overview: inout Overview) {
        let accounts = settings.accounts
        overview.groups = forwarder.groupOverviews.map { group in
            Overview.Group(group, of: accounts.first { $0.name == group.name }?.settings.credential)
        }
        overview.isOpen = isOpen
        overview.counters = forwarder.counters
        overview.sharedCache = forwarder.sharedCacheOverview
        overview.limits.flights = forwarder.flightsUnderWay
        overview.limits.refusedForRoom = queue.refused
        overview.limits.mismatches = carriers.mismatches
        overview.upstreams = carriers.tallies.figures
    }
}
