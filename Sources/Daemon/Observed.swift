import Base
import Configuration
import Control
import Counters
import DNSCache
import Forwarding
import Transport

/// The parts of the daemon that the observer observes.
extension Observer {
    convenience init(
        _ settings: Settings, _ forwarderLoop: ForwarderLoop, _ streams: [StreamServer],
        _ datagrams: [DatagramListener], _ cache: DNSCache, _ certificates: CertificateFiles, _ cacheFile: CacheFile?,
        remarks: [String], fileOption: String, logLinesLost: @escaping @Sendable () -> UInt64
    ) {
        self.init(
            settings,
            describe: { done in
                forwarderLoop.loop.submit {
                    var observation = Observation(cache.statistics)
                    let isEncrypted = streams.contains { $0.tally.transport.isEncrypted }
                    observation.remarks =
                        remarks + [cacheFile?.trouble, isEncrypted ? certificates.trouble : nil].compactMap(\.self)
                    observation.fileOption = fileOption
                    observation.certificate = isEncrypted ? certificates.current?.shown : nil
                    observation.isOpen = forwarderLoop.isOpen
                    forwarderLoop.look { observation.add($0, $1) }
                    done(observation)
                }
            },
            checkReadiness: { forwarderLoop.checkReadiness() },
            queues: ([forwarderLoop.loop] + streams.map(\.loop)).map { loop in
                (ping: { loop.submit($0) }, progress: { loop.turns })
            }
                + datagrams.map { listener in
                    (ping: { listener.reader.ping($0) }, progress: { listener.tallies[0].answered })
                },
            listeners: datagrams.flatMap(\.tallies) + streams.map(\.tally), forwarderLoop: forwarderLoop.tally,
            logLinesLost: logLinesLost)
    }
}

extension Observation {
    fileprivate mutating func add(_ forwarder: borrowing Forwarder, _ inEffect: SettingsInEffect) {
        groups = forwarder.groupOverviews
        if let names = inEffect.names { remarks += names.remarks + names.leftOut }
        if let trouble = inEffect.troubleOfNames { remarks.append(trouble) }
        remarks += inEffect.hostsRemarks
        accounts = inEffect.settings.waysOfAccounts
        leftOut = inEffect.leftOut
        reach = inEffect.translation.reach
        (counters, namesSent) = (forwarder.counters, forwarder.namesSent)
        sharedCache = forwarder.sharedCacheOverview
        (mainRoute, hasLostServers) = (forwarder.mainRoute, forwarder.hasLostServers)
        flights = forwarder.flightsUnderWay
        upstreams = inEffect.upstreams.figures
    }
}

extension Settings {
    /// The protocol of each account, by its group's name.
    var waysOfAccounts: [String: AccountWay] {
        Dictionary(uniqueKeysWithValues: accounts.map { ($0.name, AccountWay($0.credential)) })
    }
}
