import Base
import Configuration
import Forwarding
import Log
import Transport

/// The servers of groups that `resolvConf` finds, and the hosts file, read again when their files change.
///
/// `@unchecked Sendable`: confined to the forwarder's loop, except the reading, which has values of its own.
final class LocalServers: @unchecked Sendable {
    /// Called when ``network`` or the servers of a group have changed.
    var serversChanged: () -> Void = {}
    /// Called when the hosts file has changed.
    var hostsChanged: (HostsTable) -> Void = { _ in }
    /// The servers of `resolvConf`; empty while they are not used.
    private var found: [Endpoint] { reading?.found ?? [] }
    /// The usable servers of each group.
    private var servers: [[Server]] {
        guard let settings, let reading else { return [] }
        return settings.messageGroups.map { reading.servers(of: $0).usable }
    }
    /// Whether ``found`` has had a server since `resolvConf` is used.
    private var hasFound = false
    /// See ``LocalReading/network``. While the machine is cut off, the last network whose servers it has reached: that
    /// network's answers stay right until another one begins.
    private(set) var network: UInt64 = 0
    /// ``network`` at the last reading that reached a server; nil before one.
    private var lastReached: UInt64?
    private(set) var hosts = HostsTable()
    /// The endpoints of the daemon itself.
    let listening: [Endpoint]

    private var settings: Settings?
    /// The last reading, which defines the servers that lead back to this daemon.
    private var reading: LocalReading?
    private let report: Report
    private let loop: EventLoop
    private lazy var watch = FileWatch(in: loop, failed: report.cannotFollow) { [unowned self] _ in read() }
    private var said: Set<LeftOutServer> = []
    /// The hosts files without contents when ``hosts`` was read.
    private var emptyHosts: Set<String> = []
    /// While names stay that the hosts files lack.
    private var hostsLack: FileLack?
    /// While the servers stay although the file that named them has none.
    private var serversLack: FileLack?
    /// When ``networkChanged()`` was called last, in nanoseconds of ``Clock``.
    private var networkChangedAt: UInt64 = 0
    /// Why the hosts files could not be read the last time.
    private var hostsFailures: [String: SystemError] = [:]
    /// The ignored parts of the hosts file at the last reading, in words.
    private var leftOutHosts: [String] = []
    /// Increases when a reading begins or becomes needless: the result of an earlier reading is ignored.
    private var turn = 0
    private var isReading = false
    private let asksResolvedFirst: Bool

    /// - Parameters:
    ///   - listening: The endpoints of the daemon itself.
    ///   - asksResolvedFirst: Whether the first reading waits for systemd-resolved; a start of the daemon does not.
    init(listening: [Endpoint], loop: EventLoop, report: Report, asksResolvedFirst: Bool = false) {
        (self.listening, self.loop, self.report) = (listening, loop, report)
        self.asksResolvedFirst = asksResolvedFirst
    }

    /// Reads the inputs of ``apply(_:_:)``, on any thread.
    /// - Parameter old: The settings in effect; nil at the start.
    func read(_ new: Settings, after old: Settings?) -> LocalReading {
        // Followed files are known already.
        let knowsHosts = old.map { $0.fallback.hosts == new.fallback.hosts } ?? false
        return LocalReading(
            new, listening: listening, Self.resolvers(new).union(knowsHosts ? [] : .hosts),
            // A start waits for no other program: the bus may begin later.
            asksResolved: asksResolvedFirst || old != nil)
    }

    private static func resolvers(_ settings: Settings) -> LocalReading.Parts {
        settings.isResolvConfNeeded || settings.nat64.isSearched(Routes.families()) ? .resolvers : []
    }

    /// Applies settings and the reading that belongs to them, without the callbacks, and follows the files from now on.
    /// - Returns: Whether ``found`` has changed.
    func apply(_ new: Settings, _ reading: LocalReading) -> Bool {
        let (last, before, wasReading) = (settings, found, isReading)
        let areSameFiles =
            last.map { $0.fallback.resolvConf == new.fallback.resolvConf && Self.resolvers($0) == Self.resolvers(new) }
        settings = new
        turn += 1
        isReading = false
        follow(new)
        // A reading that began before the network changed knows the former one.
        let isOutdated = reading.begun <= networkChangedAt
        if !isOutdated || areSameFiles != true {
            take(resolvers: reading)
            serversLack = nil
        }
        if Self.resolvers(new).isEmpty { hasFound = false }
        if let read = reading.hosts {
            let followed = (last?.fallback.hosts ?? []).filter(new.fallback.hosts.contains)
            let union = reading.mayLackHosts(of: followed, emptyBefore: emptyHosts) ? read.joined(with: hosts) : nil
            (hosts, hostsLack) = (union ?? read, union == nil ? nil : FileLack(at: Clock.now()))
            if union == nil { takeFaults(of: reading, read) }
        }
        if last == nil || found != before { reportResolvers() }
        // Read again if a file has changed between its reading and its watch, or the network since.
        let isDue = isOutdated || wasReading || reading.isShort || reading.isByRoutes || hostsLack != nil
        read(unlessStill: isDue ? nil : reading.withoutHosts)
        return found != before
    }

    /// The servers left out of each group that has any, by the group's name.
    var leftOut: [String: [LeftOutServer]] { settings.flatMap { reading?.leftOut(of: $0) } ?? [:] }

    /// The hosts files that cannot be read, and the ignored parts of the others, in words.
    var hostsRemarks: [String] { Report.unread(settings?.fallback.hosts ?? [], hostsFailures) + leftOutHosts }

    /// This machine's addresses or routes have changed: other servers may be its own, or may be for all names.
    func networkChanged() {
        networkChangedAt = Clock.now()
        if let settings { follow(settings) }
        // A hosts file that is being read must not be lost with that reading.
        read(isReading ? [.resolvers, .hosts] : .resolvers)
    }

    private func follow(_ settings: Settings) {
        // Whether a server leads back to this daemon may change with the servers that systemd-resolved asks.
        let resolvers =
            Self.resolvers(settings).isEmpty ? [] : settings.fallback.resolvConf + [LocalReading.resolvedServers]
        watch.follow(resolvers + settings.fallback.hosts)
    }

    func stop() {
        watch.follow([])
        turn += 1
    }

    /// The servers of a group: with the servers found by `resolvConf` instead of that word, each once, and none that
    /// leads back to this daemon.
    func servers(of group: Settings.Group) -> [Server] {
        guard let reading else { return [] }
        let (usable, leftOut) = reading.servers(of: group)
        say(leftOut)
        return usable
    }

    /// Reads and compares the files on another thread: they may have a million names.
    /// - Parameter known: Nothing is read if the files are unchanged since this reading.
    private func read(_ parts: LocalReading.Parts = [.resolvers, .hosts], unlessStill known: LocalReading? = nil) {
        guard let settings, !watch.paths.isEmpty || known == nil else { return }
        turn += 1
        isReading = true
        let (turn, listening, hosts) = (turn, listening, hosts)
        let (emptyHosts, placed) = (emptyHosts, watch.placed)
        loop.elsewhere { () -> (LocalReading, union: HostsTable?, areSameHosts: Bool)? in
            if known?.holds ?? false { return nil }
            let wanted = parts.subtracting(Self.resolvers(settings).isEmpty ? .resolvers : [])
            let reading = LocalReading(settings, listening: listening, wanted, placed: placed)
            let mayLack = reading.mayLackHosts(of: settings.fallback.hosts, emptyBefore: emptyHosts)
            let union = mayLack ? reading.hosts?.joined(with: hosts) : nil
            return (reading, union, (union ?? reading.hosts) == hosts)
        } then: { [self] read in
            guard self.turn == turn else { return }
            isReading = false
            if let (reading, union, areSameHosts) = read { take(reading, union, areSameHosts: areSameHosts) }
        }
    }

    /// - Parameters:
    ///   - union: The hosts with the former ones that they lack, if a file of theirs may be half-written.
    ///   - areSameHosts: Whether the hosts in effect are the union, or without it those of the reading.
    private func take(_ reading: LocalReading, _ union: HostsTable?, areSameHosts: Bool) {
        let (before, serversBefore) = ((found, network), servers)
        /// Begins or continues a lack; nil if it is over.
        func lack(_ former: FileLack?, of paths: [String]) -> FileLack? {
            let now = Clock.now()
            let isUnfinished = !reading.unfinished.isDisjoint(with: paths)
            return (former ?? FileLack(at: now)).continued(isUnfinished: isUnfinished, at: now)
        }
        serversLack = goneSource(reading).flatMap { lack(serversLack, of: [$0]) }
        if serversLack == nil { take(resolvers: reading) }
        let areOtherServers = servers != serversBefore
        if areOtherServers { reportResolvers() }
        if areOtherServers || (found, network) != before { serversChanged() }
        if let read = reading.hosts {
            hostsLack = union == nil ? nil : lack(hostsLack, of: settings?.fallback.hosts ?? [])
            let kept = hostsLack == nil ? nil : union
            if !areSameHosts || kept == nil && union != nil {
                let gone = hosts
                hosts = kept ?? read
                hostsChanged(hosts)
                // Freeing the memory of a million names takes a while too.
                loop.elsewhere({ withExtendedLifetime(gone) {} }, then: {})
            }
            if kept == nil { takeFaults(of: reading, read) }
        }
        // The obstacle may be gone in a while.
        if reading.isShort || hostsLack != nil || serversLack != nil { watch.lookAgain() }
    }

    /// The file that names the present servers, if it has none now, in the same network.
    private func goneSource(_ reading: LocalReading) -> String? {
        guard let last = self.reading, let source = last.source, networkChangedAt < last.begun else { return nil }
        return reading.emptyResolvConf.contains(source) ? source : nil
    }

    /// While files cannot be read for a lack of descriptors, the earlier servers stay.
    private func take(resolvers reading: LocalReading) {
        if reading.found == nil, self.reading != nil { return }
        self.reading = reading.withoutHosts
        if reading.reachesServers { lastReached = reading.network }
        network = reading.isCutOff ? lastReached ?? reading.network : reading.network
        if !found.isEmpty { hasFound = true }
        said = said.filter { $0.reason == .loop || reading.leftOut.contains($0) }
        say(reading.leftOut)
    }

    /// Reports the defects of hosts files, and keeps them to find new ones.
    private func takeFaults(of reading: LocalReading, _ hosts: HostsTable) {
        emptyHosts = reading.emptyHosts
        guard let settings else { return }
        let failures = reading.hostsFailures
        let paths = settings.fallback.hosts
        for path in paths {
            if let failure = failures[path], !failure.isNotFound, failure != hostsFailures[path] {
                report.log.warning("\(Report.unread(path, failure))")
            }
        }
        let leftOut = Report.leftOut(hosts, paths)
        for words in leftOut where !leftOutHosts.contains(words) { report.log.warning("\(words)") }
        (hostsFailures, leftOutHosts) = (failures, leftOut)
    }

    private func say(_ leftOut: [LeftOutServer]) {
        for server in leftOut where said.insert(server).inserted { report.leftOut(server) }
    }

    private func reportResolvers() {
        guard let settings else { return }
        let servers = servers(of: settings.fallback.group)
        if !servers.isEmpty || settings.isFallbackNeeded { report.fallback(settings, servers) }
        let (group, own) = (settings.privateNames, self.servers(of: settings.privateNames))
        // The groups of `thenTry` are asked in place of the missing servers.
        if own.isEmpty, group.thenTryOn.contains(.failure), !group.thenTry.isEmpty { return }
        report.privateNames(own, unlike: servers, isAwaited: group.entries.contains(.resolvConf) && !hasFound)
    }
}

/// How long names or servers stay that their files lack: see ``FileStamp``. An editor moves a file away or empties it
/// before it writes it again, and a script may make it readable last. Times are in nanoseconds of ``Clock``.
struct FileLack {
    private let begun: UInt64
    /// When the files were last found unfinished.
    private var unfinished: UInt64

    private static let rest: UInt64 = 5_000_000_000
    /// A program may write one of the files again and again: the names of all of them would stay.
    private static let limit: UInt64 = 60_000_000_000

    init(at now: UInt64) { (begun, unfinished) = (now, now) }

    /// The lack after another reading; nil if it is over.
    func continued(isUnfinished: Bool, at now: UInt64) -> FileLack? {
        var lack = self
        if isUnfinished { lack.unfinished = now }
        return now - lack.unfinished < Self.rest && now - begun < Self.limit ? lack : nil
    }
}

extension Report {
    func fallback(_ settings: Settings, _ servers: [Server]) {
        if servers.isEmpty {
            say(.warning, .noLocalResolver, about: "fallback", Self.noFallback)
        } else {
            log.notice("\(settings.fallback.group.title) \(servers.map(\.description).joined(separator: ", "))")
        }
    }

    /// - Parameters:
    ///   - others: The servers of `[fallback]`, which were logged just before.
    ///   - isAwaited: Whether the network is to name servers, and has named none since the daemon began.
    func privateNames(_ servers: [Server], unlike others: [Server], isAwaited: Bool) {
        if servers.isEmpty, isAwaited {
            log.notice("private names get SERVFAIL until a resolver of this network is known")
        } else if servers.isEmpty {
            log.notice("private names get NXDOMAIN: no resolver of this network is known")
        } else if servers != others {
            log.notice("private names are asked of \(servers.map(\.description).joined(separator: ", "))")
        }
    }

    func leftOut(_ server: LeftOutServer) {
        if server.reason == .loop { log.warning("\(server.words)") } else { log.notice("\(server.words)") }
    }

    /// Why `[fallback]` has no server, and the effect on its names.
    static let noFallback =
        "fallback has no server: what HTTPDNS does not answer gets SERVFAIL; name one in fallback.servers"

    /// Why files that may change cannot be watched.
    func cannotFollow(_ error: SystemError) {
        say(
            .warning, .systemFailed, about: "changes of files",
            "changed files are not noticed at once, but read again every 10 s: \(error)")
    }

    static func unread(_ path: String, _ error: SystemError) -> String {
        "\(path) cannot be read, so nothing is answered from it: \(error)"
    }

    /// The hosts files that cannot be read, in words. A host may have none where the settings name none.
    static func unread(_ paths: [String], _ failures: [String: SystemError]) -> [String] {
        let areStandard = paths == Settings().fallback.hosts
        return paths.compactMap { path in
            failures[path].flatMap { areStandard && $0.isNotFound ? nil : unread(path, $0) }
        }
    }

    /// The ignored parts of a hosts file, in words.
    static func leftOut(_ hosts: HostsTable, _ paths: [String]) -> [String] {
        var words: [String] = []
        if hosts.leftOut > 0 {
            words.append(
                "\(paths.joined(separator: " and ")) has more names than the \(HostsTable.maximumNames) that are kept: "
                    + "\(hosts.leftOut) are left out; give a shorter file")
        }
        if hosts.unread.count > 0 {
            let most = HostsTable.maximumAddresses
            words.append(
                "\(paths[hosts.unread.firstFile]): \(counted(hosts.unread.count, "time")) something is left out, the first time on line \(hosts.unread.firstLine): "
                    + "a word that is no name, or more than \(most) addresses of a name or \(most) names of an address")
        }
        return words
    }
}
