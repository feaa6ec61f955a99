public import Base
public import Configuration
public import Control
import Counters
import Cryptography
import DNSCache
import DNSWire
import Dispatch
import Forwarding
public import Log
import Transport
import Upstreams

/// The whole daemon, made from the settings: sockets, cache, forwarder's loop and upstreams.
public final class Daemon: @unchecked Sendable {
    // Unchecked: the parts are set once, and each is confined to its own loop or queue.
    let report: Report
    let sockets: Sockets
    let cache: DNSCache
    /// The numbers of the groups; used by the thread that calls ``reload(_:)``.
    var numbers = GroupNumbers()
    let forwarderLoop: ForwarderLoop
    /// The servers of TCP, and of TLS and HTTPS if these are served.
    let streams: [StreamServer]
    /// The files of the streams' certificate.
    let certificates: CertificateFiles
    private let datagrams: [DatagramListener]
    let cacheFile: CacheFile?
    /// The file with the addresses of servers whose host is a name; nil if they are not stored.
    private let serverFile: ServerAddressFile?
    let environment: [String: String]
    /// The settings in effect; used by the thread that calls ``reload(_:)``.
    var settings: Settings
    let observer: Observer
    private let control: ControlServer?
    private let network: Result<NetworkWatch, SystemError>
    private var watchdog: Watchdog?

    /// How long a stop waits for the questions under way, and for clients to read their answers, in nanoseconds.
    private static let longestDrain: UInt64 = 2_000_000_000
    /// How long the end waits for the threads that listen, and again for these threads to close their connections, and a
    /// reload for them to take the settings, in nanoseconds.
    static let longestEnd = 2_000_000_000
    /// How long questions wait for the cache's file to be read.
    private static let longestRead = DispatchTimeInterval.seconds(1)

    /// Binds the sockets; no question is asked or answered yet.
    /// - Parameters:
    ///   - origins: The positions of the settings; nil if there are none.
    ///   - environment: The variables that may contain `http_proxy` and the like.
    ///   - logLinesLost: Returns the number of lost log lines; may be called from any thread.
    ///   - reload: Reloads the configuration at an operator's command; nil if that command is not offered.
    public init(
        _ settings: Settings, _ origins: Settings.Origins? = nil, environment: [String: String] = [:], log: Logger,
        logLinesLost: @escaping @Sendable () -> UInt64 = { 0 },
        reload: (@Sendable (_ done: @escaping @Sendable (ReloadOutcome) -> Void) -> Void)? = nil
    ) throws(StartFailure) {
        OpenSSL.prepare()
        let report = Report(log: log)
        (self.environment, self.settings) = (environment, settings)
        self.settings.forgetFiles()
        let (settings, proxies) = settings.applyingProxy(in: environment)
        var random = Random()
        let cache = DNSCache(
            bytes: settings.cache.megabytes << 20, staleSeconds: settings.cache.staleSeconds,
            prefetchAt: settings.cache.prefetchAt, seed: (random.uint64(), random.uint64()))
        Machine.raiseDescriptorLimit()
        let (sockets, resolverLoop) = try StartFailure.ofSystem(saying: Sockets.words) { () throws(SystemError) in
            (
                try Sockets.open(
                    settings.listen, workers: Machine.workers(settings.listen.workers),
                    names: environment["LISTEN_FDNAMES"]),
                try EventLoop(label: "httpdnsd.resolver")
            )
        }
        let metrics = try StartFailure.ofSystem(saying: \.explained) { () throws(SystemError) in
            try settings.control.metrics.map { address throws(SystemError) in try StreamListener.listen(address) }
        }
        // The parts that can fail come first: a daemon that does not start logs only the failure.
        let certificate = try CertificateFiles.Prepared(settings.listen, plain: sockets.endpoints(.tcp))
        let streamListeners = try sockets.streamListeners(certificate)
        let local = LocalServers(listening: sockets.endpoints, loop: resolverLoop, report: report)
        serverFile = try StartFailure.ofSystem { () throws(SystemError) in
            settings.cache.file.isEmpty ? nil : try ServerAddressFile(beside: settings.cache.file, report: report)
        }
        let lookup = ServerLookup(
            loop: resolverLoop, listening: sockets.endpoints, file: serverFile, report: report)
        let generations = Generations(
            beside: serverFile == nil ? nil : settings.cache.file, with: serverFile, report: report)
        let forwarderLoop = ForwarderLoop(
            loop: resolverLoop, cache: cache, local: local, lookup: lookup, generations: generations, report: report)
        // Before routes are read: its events wait until the loop starts.
        network = Result { () throws(SystemError) in
            try NetworkWatch(in: resolverLoop) { [weak forwarderLoop] in forwarderLoop?.networkChanged() }
        }
        let prepared = try forwarderLoop.prepare(
            sockets.applied(to: settings), after: nil, &numbers, Provenance(origins: origins, proxies: proxies))
        cacheFile = try StartFailure.ofSystem { () throws(SystemError) in
            settings.cache.file.isEmpty
                ? nil : try CacheFile(path: settings.cache.file, cache: cache, report: report)
        }
        forwarderLoop.begin(prepared)
        streams = try StartFailure.ofSystem { () throws(SystemError) in
            try streamListeners.map { listeners throws(SystemError) in
                try StreamServer(
                    listeners, settings.listen, frontend: forwarderLoop.frontend, forwarderLoop: forwarderLoop,
                    report: report)
            }
        }
        datagrams = sockets.datagrams.enumerated().map { index, socket in
            DatagramListener(
                socket, label: "httpdnsd.udp.\(index)", forwarderLoop: forwarderLoop,
                failed: report.systemFailed("questions over UDP wait a moment"))
        }
        certificates = CertificateFiles(loop: resolverLoop, report: report) { [streams] certificate in
            for server in streams { server.show(certificate) }
        }
        let missing = sockets.missing(settings.listen)
        let observer = Observer(
            settings, forwarderLoop, streams, datagrams, cache, certificates, cacheFile, remarks: missing,
            fileOption: origins?.fileOption ?? "", logLinesLost: logLinesLost)
        control = try StartFailure.ofSystem { [cacheFile, streams, datagrams] () throws(SystemError) in
            let unix = ControlServer.listen(settings.control, report)
            guard unix != nil || metrics != nil else { return nil }
            return try ControlServer(
                unix, metrics: metrics, host: settings.control.host, observer: observer,
                history: cacheFile.map { file in
                    HistoryFile(beside: settings.cache.file, on: file.loop, moment: { file.moment }, report: report)
                },
                watched: (datagrams.map(\.notes) + streams.map(\.notes)) + [forwarderLoop.notes], report: report,
                explain: { question, done in forwarderLoop.explain(question, done) },
                flush: { names, done in
                    forwarderLoop.forget(names[...]) { count in
                        guard let cacheFile else { return done(count) }
                        cacheFile.saveSoon { done(count) }
                    }
                }, reload: reload)
        }
        self.observer = observer
        (self.report, self.sockets, self.cache, self.forwarderLoop) = (report, sockets, cache, forwarderLoop)
        report.proxies(proxies)
        report.service(settings)
        report.allowed(settings.listen.allow, at: sockets)
        for words in missing { report.log.warning("\(words)") }
        if let certificate, streamListeners.count > 1 { certificates.follow(certificate) }
    }

    /// The address of the metrics and the status page; nil if there is none.
    public var metricsEndpoint: Endpoint? { control?.metricsEndpoint }

    /// Begins to answer questions.
    public func start() throws(StartFailure) {
        try StartFailure.ofSystem { () throws(SystemError) in
            if case .failure(let error) = network {
                report.systemFailed(
                    "changes of the network are noticed only when connections stay silent, so some answers come late",
                    error)
            }
            forwarderLoop.loop.start()
            for server in streams { try server.start() }
            for listener in datagrams { try listener.reader.start() }
            try control?.start()
        }
        if let cacheFile {
            let isRead = { @Sendable [forwarderLoop] in forwarderLoop.cacheIsRead() }
            cacheFile.start(isRead)
            // A disk that hangs must not delay answers.
            DispatchQueue.global().asyncAfter(deadline: .now() + Self.longestRead, execute: isRead)
        } else {
            forwarderLoop.cacheIsRead()
        }
        if WallClock.unixSeconds() < Version.made { report.clockUnset() }
        report.listening(on: sockets)
        if let metricsEndpoint { report.metrics(on: metricsEndpoint) }
        let watched = Watchdog.Sources(
            liveness: { [observer] in observer.liveness($0) },
            headline: { [observer] say in observer.observe { say(Overview($0).headline) } })
        watchdog = Watchdog(watched, report: report)
        watchdog?.start()
    }

    /// Stops in order: takes no new questions, answers questions under way for at most two seconds, then closes all.
    /// - Parameter stopped: Called once, on a queue of the daemon.
    public func stop(because reason: String, _ stopped: @escaping @Sendable () -> Void) {
        watchdog?.stop()
        report.stopping(reason)
        observer.stopping()
        let listening: [End] =
            datagrams.map { part in { part.reader.stop($0) } }
            + streams.map { part in { part.stopListening($0) } }
        // All received questions have been submitted by then, unless the time was over.
        Self.end(listening, within: .nanoseconds(Self.longestEnd)) { [self] in
            let deadline = Clock.now() + Self.longestDrain
            forwarderLoop.drain(within: Self.longestDrain) { [self] in
                guard let control else { return close(by: deadline, stopped) }
                control.keepHistory { [self] in
                    forwarderLoop.loop.submit { [self] in close(by: deadline, stopped) }
                }
            }
        }
    }

    /// - Parameter deadline: Until when clients may read their answers, in the time of ``Clock``.
    private func close(by deadline: UInt64, _ stopped: @escaping @Sendable () -> Void) {
        if case .success(let watch) = network { watch.stop() }
        forwarderLoop.loop.submit { [certificates] in certificates.stop() }
        let stopped: @Sendable () -> Void = { [control] in
            guard let control else { return stopped() }
            control.stop(stopped)
        }
        let serving: [End] = streams.map { part in { part.stop(by: deadline, $0) } }
        let rest = Int(deadline - min(deadline, Clock.now()))
        Self.end(serving, within: .nanoseconds(rest + Self.longestEnd)) { [forwarderLoop, cacheFile, serverFile] in
            forwarderLoop.stop {
                guard let cacheFile, let serverFile else { return stopped() }
                serverFile.stop { cacheFile.stop(stopped) }
            }
        }
    }

    /// Ends a part of the daemon, or has it take other settings, and calls its argument once that is done.
    typealias End = (_ ended: @escaping @Sendable () -> Void) -> Void

    /// Does this for parts at the same time, and goes on when all is done or the time is over: the threads that serve
    /// TLS give way to other programs, and on a busy machine may not run for many seconds.
    static func end(
        _ parts: [End], within time: DispatchTimeInterval, _ ended: @escaping @Sendable () -> Void
    ) {
        let (partEnded, count) = (DispatchSemaphore(value: 0), parts.count)
        for end in parts { end { partEnded.signal() } }
        DispatchQueue.global().async {
            let deadline = DispatchTime.now() + time
            for _ in 0..<count where partEnded.wait(timeout: deadline) == .timedOut { break }
            ended()
        }
    }

    /// Logs the counts since the start.
    public func logCounters() { observer.observe { [report] in report.counters($0) } }
}

extension Daemon {
    /// Checks the settings by making the parts from them, as only their making finds some errors; returns remarks on
    /// valid but doubtful settings.
    /// - Parameters:
    ///   - environment: The variables that may contain `http_proxy` and the like.
    ///   - areOfService: Whether the settings are those of the service, which systemd passes sockets to.
    public static func check(
        _ settings: Settings, environment: [String: String] = [:], areOfService: Bool = false
    ) throws(StartFailure) -> [String] {
        if areOfService { try Sockets.checkCertificateUnderSystemd(settings.listen) }
        let (settings, proxies) = settings.applyingProxy(in: environment)
        var words = proxies.map(\.text)
        let numbers = GroupNumbers(settings)
        _ = try UpstreamRegistry.Prepared(settings)
        let names = try NameLists(settings, numbers)
        words += names.contents + names.remarks
        _ = try Store.Prepared(settings.sharedCache)
        if let certificate = try CertificateFiles.Prepared(settings.listen, plain: settings.listen.addresses) {
            words += certificate.shown.remarks(at: WallClock.unixSeconds())
        }
        words += settings.accounts.compactMap { Report.limits(of: $0) }
        let (allow, addresses) = (settings.listen.allow, settings.listen.everyAddress)
        words += Report.open(allow, at: addresses, overUDP: settings.listen.addresses)
        words += Report.withoutEffect(settings)
        words += [Report.closedToThisHost(allow, at: addresses), Report.billsAll(settings)].compactMap(\.self)
        words += settings.groups.compactMap { Report.right($0) ?? Report.barred($0) }
        words += Report.privateNamesElsewhere(settings, names, numbers)
        words += Sockets.missingUnderSystemd(settings.listen)
        let local = LocalReading(settings, [.resolvers, .hosts])
        words += Report.unread(settings.fallback.hosts, local.hostsFailures)
        words += local.hosts.map { Report.leftOut($0, settings.fallback.hosts) } ?? []
        words += Report.publicResolvers(settings, local) + Report.loopbackName(settings, local.hosts ?? HostsTable())
        guard settings.isFallbackNeeded else { return words }
        let found = local.servers(of: settings.fallback.group)
        if !found.usable.isEmpty { return words }
        return words + [found.leftOut.first?.words ?? Report.noFallback]
    }
}

extension Report {
    func counters(_ seen: Observation) {
        let (cache, counters, counts) = (seen.cache, seen.counters, seen.counts)
        let refused = counters.refusedFlights + counters.refusedWaiting + counts[.noRoom]
        log.notice(
            """
            cache \(cache.entries) answers, \(cache.bytes) bytes, \(cache.hits) hits, \(cache.misses) misses, \
            \(cache.evictions) evicted; \(counters.flights) questions looked up, \(counters.joined) joined one under way, \
            \(refused) refused; \(seen.groups.map(Self.counters).joined(separator: "; ")); \
            \(Counted.mismatches.reduce(0) { $0 + counts[$1] }) messages that were no answer ignored \
            (\(counts[.mismatchICMP]) ICMP errors, \(counts[.mismatchOtherCase]) in another case); \
            \(counters.fallbacks) fell back, \(counters.servedStale) stale, \
            \(counters.overdue) out of time; \(counts[.accepted]) TCP clients, \
            \(counts[.refused] + counts[.refusedOfOneSource]) refused, \(counts[.closedForRoom]) closed for room, \
            \(counts[.closedIdle]) idle, \(counts[.cutOff]) cut off
            """)
    }

    private static func counters(_ group: GroupOverview) -> String {
        let counters = group.counters
        if group.answer != nil { return "\(group.title) answered \(counted(counters.questions, "question")) itself" }
        let asked =
            group.carriesAddresses
            ? "\(counters.queries) requests for \(counters.names) names"
            : "\(counters.queries + counters.repeats) queries, \(counters.repeats) repeated"
        return "\(group.title) \(asked), \(counters.failures) failed"
    }
}
