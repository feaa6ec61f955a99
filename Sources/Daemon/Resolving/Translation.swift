import Base
import Configuration
import DNSWire
import Forwarding
import Log
import Transport
import Upstreams

/// `[nat64]`: the prefix of the network's translator, its search and use. Confined to the forwarder's loop.
final class Translation {
    /// Called when the prefix or its use has changed.
    var changed: () -> Void = {}
    private(set) var reach = IPv4Reach()
    private var settings: Settings.NAT64?
    private var search = PrefixSearch()
    /// The routes of the present network. While no route leads out of this machine, those of the last one: the prefix
    /// and its use stay until another network begins.
    private var network: (ipv4: Bool, ipv6: Bool)?
    private let lookup: ServerLookup
    private let report: Report
    /// The last log line about the translator.
    private var said: String?

    init(_ lookup: ServerLookup, report: Report) { (self.lookup, self.report) = (lookup, report) }

    /// The prefix of the AAAA records that are made from A records; nil if none are made.
    var synthesis: NAT64Prefix? { reach.isSynthesizing ? reach.prefix : nil }
    /// Whether there was no descriptor to read the routes when they were last needed.
    private(set) var areRoutesUnseen = false
    /// Whether the network's resolvers were not asked yet, or have not answered.
    var isSearching: Bool { search.isAwaited }

    /// Applies settings, which may be the same.
    /// - Parameter areOtherResolvers: Whether the resolvers of `resolvConf` have changed with the settings.
    func apply(_ new: Settings.NAT64, areOtherResolvers: Bool, at now: Tick) {
        // Without a watch on the network, a reload alone sees that routes have changed.
        guard new != settings || areOtherResolvers || routes() != (reach.hasIPv4, reach.hasIPv6) else { return }
        settings = new
        networkChanged(at: now)
    }

    /// This machine's addresses or routes have changed, or the resolvers of `resolvConf`.
    /// - Returns: Whether ``changed`` was called.
    @discardableResult
    func networkChanged(at now: Tick) -> Bool {
        guard let settings else { return false }
        let routes = routes()
        if routes.ipv4 || routes.ipv6 { network = routes }
        search.begin(isWanted: settings.isSearched(network ?? routes), at: now)
        return update(routes)
    }

    /// The present routes; while there is no descriptor to read them, the last known ones.
    private func routes() -> (ipv4: Bool, ipv6: Bool) {
        let routes = Routes.families()
        areRoutesUnseen = routes == nil
        return routes ?? (reach.hasIPv4, reach.hasIPv6)
    }

    var nextDeadline: Tick? { search.nextDeadline }

    func expire(at now: Tick) {
        guard search.takeDue(at: now) else { return }
        lookup.askForPrefix { [unowned self] answer in
            let isAnswer = answer.head.responseCode.isAnswer
            search.answered(isAnswer ? answer.addresses : nil, for: answer.keep, at: Tick(nanoseconds: Clock.now()))
            update((reach.hasIPv4, reach.hasIPv6))
        }
    }

    /// No socket takes the translator any more.
    func close() { Translator.use(nil) }

    /// - Returns: Whether ``changed`` was called.
    @discardableResult
    private func update(_ routes: (ipv4: Bool, ipv6: Bool)) -> Bool {
        guard let settings else { return false }
        let network = network ?? routes
        var new = IPv4Reach()
        (new.hasIPv4, new.hasIPv6) = routes
        new.prefix =
            switch settings.prefix {
            case .none: nil
            case .auto: search.prefix
            case .given(let given): given
            }
        let isSynthesizing = settings.synthesize == .always || settings.synthesize == .auto && !network.ipv4
        new.isSynthesizing = isSynthesizing && new.prefix != nil
        let isOther = new.prefix != reach.prefix || new.isSynthesizing != reach.isSynthesizing
        reach = new
        if isOther {
            Translator.use(new.prefix)
            changed()
        }
        if !isSearching, network == routes, new.words != said {
            said = new.words
            report.log.notice("\(new.words ?? "IPv4 is reached without a translator")")
        }
        return isOther
    }
}

extension Settings.NAT64 {
    /// Whether the network's resolvers are to be asked for the NAT64 prefix.
    /// - Parameter routes: The present routes; nil if unknown.
    func isSearched(_ routes: (ipv4: Bool, ipv6: Bool)?) -> Bool {
        prefix == .auto && routes.map { $0.ipv6 && (!$0.ipv4 || synthesize == .always) } ?? true
    }
}
