import Configuration
import Control
import Counters
import DNSCache
import Forwarding
import Transport

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
                    overview.isOpen = forwarderLoop.isOpen
                    overview.limits.refusedForRoom = forwarderLoop.queue.refused
                    forwarderLoop.look { overview.add($0, $1) }
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

extension Overview {
    fileprivate mutating func add(_ forwarder: borrowing Forwarder, _ inEffect: SettingsInEffect) {
        let accounts = inEffect.settings.accounts
        groups = forwarder.groupOverviews.map { group in
            Group(group, of: accounts.first { $0.name == group.name }?.settings.credential)
        }
        counters = forwarder.counters
        sharedCache = forwarder.sharedCacheOverview
        limits.flights = forwarder.flightsUnderWay
        limits.mismatches = inEffect.upstreams.mismatches
        upstreams = inEffect.upstreams.tallies.figures
    }
}
