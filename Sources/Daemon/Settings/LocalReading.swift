import Base
import Configuration
import Forwarding
import Transport

/// The resolvers and hosts of this machine, by its files and interfaces, read once, on any thread but the forwarder's:
/// the hosts file may be long, and a disk slow.
struct LocalReading: Sendable {
    /// The servers of `resolvConf`, empty while they are not used; nil if they could not be read for a lack of
    /// descriptors.
    private(set) var found: [Endpoint]?
    /// The file of `resolvConf` that names ``found``; nil if none does.
    private(set) var source: String?
    /// The files of `resolvConf` before ``source`` that are missing, unreadable or without a server.
    private(set) var emptyResolvConf: Set<String> = []
    /// The servers that `resolvConf` names and that are left out.
    private(set) var leftOut: [LeftOutServer] = []
    /// A number for the network of these servers: the servers, the links that lead to them, and when these links have
    /// joined it; 0 without such servers. A server of this machine itself asks others: with it count the links of
    /// default routes.
    private(set) var network: UInt64 = 0
    /// Whether no route leads out of this machine, nor to one of these servers, except to this machine itself.
    private(set) var isCutOff = false
    /// Whether the machine is not cut off, and a route leads to one of these servers.
    private(set) var reachesServers = false
    /// Whether routes alone decided which of systemd-resolved's servers are for all names, since it could not be asked.
    private(set) var isByRoutes = false
    /// Whether a file could not be read for a lack of descriptors.
    private(set) var isShort = false
    /// The contents of the hosts files; nil if not requested, or not readable for a lack of descriptors.
    private(set) var hosts: HostsTable?
    /// Why hosts files cannot be read, by their paths.
    private(set) var hostsFailures: [String: SystemError] = [:]
    /// The hosts files that are missing, empty or unreadable.
    private(set) var emptyHosts: Set<String> = []
    /// The files that a program may still be writing: see ``FileStamp``.
    let unfinished: Set<String>

    /// When the reading began, in nanoseconds of ``Clock``.
    let begun = Clock.now()
    private let listening: [Endpoint]
    /// The machine's own addresses.
    private let own: [Endpoint]
    private let resolvedAsks: [Endpoint]
    private let stamps: [FileStamp]

    private static let resolvConfLimit = 64 * 1024
    /// The file in which systemd-resolved lists the servers it asks (systemd-resolved.service(8)).
    static let resolvedServers = "/run/systemd/resolve/resolv.conf"

    /// The parts to read.
    struct Parts: OptionSet, Sendable {
        let rawValue: UInt8

        static var resolvers: Parts { Parts(rawValue: 1) }
        static var hosts: Parts { Parts(rawValue: 2) }
    }

    /// - Parameters:
    ///   - listening: The endpoints of the daemon itself; nil for all that the settings name, over any transport.
    ///   - asksResolved: Whether systemd-resolved is asked which of its servers are for all names, however long that
    ///     takes; else routes decide.
    ///   - placed: See ``FileWatch/placed``.
    init(
        _ settings: Settings, listening: [Endpoint]? = nil, _ parts: Parts, asksResolved: Bool = true,
        placed: [String: FileStamp] = [:]
    ) {
        var isShort = false
        self.listening = listening ?? settings.listen.everyAddress
        do throws(SystemError) {
            own = try Interfaces.addresses()
        } catch {
            own = []
            isShort = error.isShortage
        }
        let resolvConf = parts.contains(.resolvers) ? settings.fallback.resolvConf : []
        let hosts = parts.contains(.hosts) ? settings.fallback.hosts : []
        let paths = resolvConf + [Self.resolvedServers] + hosts
        let stamps = paths.map(FileStamp.init)
        self.stamps = stamps
        unfinished = Set(paths.indices.filter { stamps[$0].mayBeWritten(since: placed[paths[$0]]) }.map { paths[$0] })
        resolvedAsks = Self.servers(of: Self.resolvedServers, &isShort) ?? []
        found = []
        findServers(resolvConf, asksResolved: asksResolved, &isShort)
        if isShort { (found, leftOut, self.isShort) = (nil, [], true) }
        network = Self.network(of: found ?? [])
        let reached = (found ?? []).filter { Routes.lead(to: $0) ?? true }
        // The stub of systemd-resolved is all that is left in its files without a network.
        isCutOff =
            Routes.families().map { !$0.ipv4 && !$0.ipv6 } ?? false
            && reached.allSatisfy { $0.address.isLoopback || Routes.link(to: $0) == NetworkLink.loopback }
        reachesServers = !isCutOff && !reached.isEmpty
        if parts.contains(.hosts) { readHosts(hosts) }
    }

    /// The reading without the hosts, to save memory.
    var withoutHosts: LocalReading {
        var reading = self
        reading.hosts = nil
        return reading
    }

    /// Whether the files are unchanged since they were read.
    var holds: Bool { stamps.allSatisfy(\.holds) }

    /// Takes the servers of the first of these files that has a usable server.
    private mutating func findServers(_ paths: [String], asksResolved: Bool, _ isShort: inout Bool) {
        var known: [LinkServer] = []
        for path in paths {
            // A missing file is normal: each kind of host has one of them.
            guard let servers = Self.servers(of: path, &isShort) else {
                emptyResolvConf.insert(path)
                continue
            }
            if path == Self.resolvedServers {
                let asked = asksResolved ? ResolverLinks.asked(servers) : nil
                isByRoutes = asked == nil
                known = asked ?? ResolverLinks.byRoutes(servers)
            }
            let (usable, loops) = split(servers)
            let (forAllNames, others) = LinkServer.split(usable, by: known)
            leftOut += loops.map { LeftOutServer($0, in: path, .loop) }
            leftOut += others.map { LeftOutServer($0.server, in: path, .link($0.link)) }
            found = forAllNames
            guard forAllNames.isEmpty else {
                source = path
                return
            }
        }
    }

    private static func network(of servers: [Endpoint]) -> UInt64 {
        if servers.isEmpty { return 0 }
        var hash = FNV()
        var isOnThisMachine = false
        for (text, server) in servers.map({ ("\($0)", $0) }).sorted(by: { $0.0 < $1.0 }) {
            let link = Routes.link(to: server)
            if link == NetworkLink.loopback { isOnThisMachine = true }
            let joined = link.flatMap { NetworkLink.joined($0, isIPv4: server.address.isIPv4) }
            hash.add("\(text) \(link ?? 0) \(joined ?? 0) ")
        }
        if isOnThisMachine {
            for link in (Routes.linksOfDefaultRoutes() ?? []).sorted() {
                for isIPv4 in [true, false] {
                    hash.add("\(link) \(NetworkLink.joined(link, isIPv4: isIPv4) ?? 0) ")
                }
            }
        }
        return hash.value
    }

    private mutating func readHosts(_ paths: [String]) {
        var table = HostsTable()
        for path in paths {
            var text: [UInt8] = []
            do throws(SystemError) {
                text = try SystemFile.read(path, limit: HostsTable.maximumOctets)
            } catch {
                if error.isShortage {
                    (hosts, isShort) = (nil, true)
                    return
                }
                hostsFailures[path] = error
            }
            if text.isEmpty { emptyHosts.insert(path) }
            table.add(parsing: text.span)
        }
        hosts = table
    }

    /// Whether any of these hosts files may lack names for a moment.
    /// - Parameter before: The files that were missing, empty or unreadable before.
    func mayLackHosts(of paths: [String], emptyBefore before: Set<String>) -> Bool {
        paths.contains { unfinished.contains($0) || emptyHosts.contains($0) && !before.contains($0) }
    }

    /// The servers of a group: with the servers found by `resolvConf` instead of that word, each once, and none that
    /// leads back to this daemon; and the servers left out.
    func servers(of group: Settings.Group) -> (usable: [Server], leftOut: [LeftOutServer]) {
        var servers: [Server] = []
        var leftOut = group.entries.contains(.resolvConf) ? leftOut : []
        for entry in group.entries {
            switch entry {
            case .resolvConf: servers += (found ?? []).map { Server($0) }
            case .server(let server):
                let (usable, loops) = split(server.endpoints)
                if loops.isEmpty || !usable.isEmpty { servers.append(server) }
                leftOut += loops.map { LeftOutServer($0, in: Self.key(group), .loop) }
            }
        }
        return (servers.eachOnce, leftOut)
    }

    /// The key that names a group's servers.
    private static func key(_ group: Settings.Group) -> String { "\(group.section).servers" }

    /// The servers left out of each group that has any, by the group's name. A file that names only this daemon is
    /// reported; one that also names others is not.
    func leftOut(of settings: Settings) -> [String: [LeftOutServer]] {
        var all: [String: [LeftOutServer]] = [:]
        for group in settings.groups where group.account == nil {
            let (usable, leftOut) = servers(of: group)
            let news = leftOut.filter { usable.isEmpty || $0.reason != .loop || $0.source == Self.key(group) }
            if !news.isEmpty { all[group.name] = news }
        }
        return all
    }

    private func split(_ servers: [Endpoint]) -> (usable: [Endpoint], loops: [Endpoint]) {
        ResolverList.withoutLoops(servers, listening: listening, own: own, resolvedAsks: resolvedAsks)
    }

    /// The servers in a file; nil if it has none or cannot be read.
    private static func servers(of path: String, _ isShort: inout Bool) -> [Endpoint]? {
        do throws(SystemError) {
            let text = try SystemFile.read(path, limit: resolvConfLimit)
            let servers = ResolverList.parse(text.span)
            return servers.isEmpty ? nil : servers
        } catch {
            isShort = isShort || error.isShortage
            return nil
        }
    }
}
