import Base
import Configuration
import Forwarding
import Log
import Logging
import Transport

/// Which local resolvers there are and what the hosts file says, followed as the files change.
final class LocalServers {
    private var settings: Settings.Fallback
    private let listening: [Endpoint]
    private var isNeeded: Bool
    private let report: Report
    private var watch: FileWatch?
    private var loop: EventLoop?
    private var serversChanged: ([Endpoint]) -> Void = { _ in }
    private var hostsChanged: (HostsTable) -> Void = { _ in }
    private var said: Set<Endpoint> = []
    private(set) var servers: [Endpoint] = []
    private(set) var hosts = HostsTable()

    private static let resolvConfLimit = 64 * 1024
    /// Where systemd-resolved writes whom it asks (systemd-resolved.service(8)).
    private static let resolvedServers = "/run/systemd/resolve/resolv.conf"
    private static let hostsLimit = 16 * 1024 * 1024

    /// - Parameters:
    ///   - listening: what the daemon itself answers on.
    ///   - isNeeded: `httpOnly` is off.
    init(_ settings: Settings.Fallback, listening: [Endpoint], isNeeded: Bool, report: Report) {
        self.settings = settings
        self.listening = listening
        self.isNeeded = isNeeded
        self.report = report
        servers = isNeeded ? readServers() : []
        hosts = readHosts()
        report.localResolvers(servers, isNeeded: isNeeded)
    }

    /// Follows the files; on the loop, or before it starts.
    func follow(
        in loop: EventLoop, serversChanged: @escaping ([Endpoint]) -> Void,
        hostsChanged: @escaping (HostsTable) -> Void
    ) throws(SystemError) {
        self.loop = loop
        (self.serversChanged, self.hostsChanged) = (serversChanged, hostsChanged)
        try watchFiles()
    }

    /// Other settings; on the loop.
    func heed(_ settings: Settings.Fallback, isNeeded: Bool) throws(SystemError) {
        guard settings != self.settings || isNeeded != self.isNeeded else { return }
        (self.settings, self.isNeeded) = (settings, isNeeded)
        watch?.stop()
        watch = nil
        defer { readFiles() }
        try watchFiles()
    }

    private func watchFiles() throws(SystemError) {
        let resolvConf = settings.servers.isEmpty ? settings.resolvConf : []
        // Whether a server leads back here may change with whom systemd-resolved asks.
        let paths =
            (isNeeded ? resolvConf + [Self.resolvedServers] : []) + (settings.hosts.isEmpty ? [] : [settings.hosts])
        guard !paths.isEmpty, let loop else { return }
        watch = try FileWatch(paths, in: loop) { [unowned self] in readFiles() }
    }

    private func readFiles() {
        let newServers = isNeeded ? readServers() : []
        if newServers != servers {
            servers = newServers
            report.localResolvers(servers, isNeeded: isNeeded)
            serversChanged(servers)
        }
        let newHosts = readHosts()
        if newHosts != hosts {
            hosts = newHosts
            hostsChanged(hosts)
        }
    }

    func stop() {
        watch?.stop()
    }

    private func readServers() -> [Endpoint] {
        let found = Self.find(settings, listening: listening)
        for (server, source) in found.loops where said.insert(server).inserted { report.loop(server, in: source) }
        return found.usable
    }

    /// The configured servers, or those of the first file that names any; a server that leads back to this daemon is none.
    static func find(
        _ settings: Settings.Fallback, listening: [Endpoint]
    ) -> (usable: [Endpoint], loops: [(Endpoint, source: String)]) {
        let own = (try? Interfaces.addresses()) ?? []
        let resolvedAsks = servers(of: resolvedServers) ?? []
        var loops: [(Endpoint, source: String)] = []
        func usable(_ servers: [Endpoint], _ source: String) -> [Endpoint] {
            let split = ResolverList.withoutLoops(servers, listening: listening, own: own, resolvedAsks: resolvedAsks)
            loops += split.loops.map { ($0, source) }
            return split.usable
        }
        let given = settings.servers.flatMap { entry in
            if case .server(let server) = entry { server.endpoints } else { [] as [Endpoint] }
        }
        guard given.isEmpty else { return (usable(given, "fallback.servers"), loops) }
        for path in settings.resolvConf {
            // A file that is not there is the normal case: each kind of host has one of them.
            guard let servers = servers(of: path) else { continue }
            let found = usable(servers, path)
            if !found.isEmpty { return (found, loops) }
        }
        return ([], loops)
    }

    /// Those that a file names; nil if it cannot be read.
    private static func servers(of path: String) -> [Endpoint]? {
        (try? SystemFile.read(path, limit: resolvConfLimit)).map { ResolverList.parse($0.span) }
    }

    private func readHosts() -> HostsTable {
        guard !settings.hosts.isEmpty else { return HostsTable() }
        do throws(SystemError) {
            let text = try SystemFile.read(settings.hosts, limit: Self.hostsLimit)
            return HostsTable(parsing: text.span)
        } catch {
            if !error.isNotFound { report.cannotRead(settings.hosts, error) }
            return HostsTable()
        }
    }
}

extension Report {
    func localResolvers(_ servers: [Endpoint], isNeeded: Bool) {
        if !servers.isEmpty {
            log.notice("local resolver \(servers.map(\.description).joined(separator: ", "))")
        } else if isNeeded {
            say(.warning, .noLocalResolver, about: "local resolvers", Self.noLocalResolver)
        }
    }

    func loop(_ server: Endpoint, in source: String) {
        log.warning("\(Self.loop(server, source))")
    }

    static let noLocalResolver = "no local resolver found: what HTTPDNS does not answer gets SERVFAIL"

    static func loop(_ server: Endpoint, _ source: String) -> String {
        "\(source) names \(server), which is this daemon itself or asks it: left out, it would ask itself for ever"
    }

    func cannotRead(_ path: String, _ error: SystemError) {
        log.warning("\(path) cannot be read: \(error)")
    }
}
