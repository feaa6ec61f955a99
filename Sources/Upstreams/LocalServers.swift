package import Base
package import Configuration
package import Forwarding
package import Log
import Logging
package import Transport

/// The local resolvers and the hosts file, read again when their files change. Confined to the forwarder's loop.
package final class LocalServers {
    /// Called when ``found`` has changed.
    package var serversChanged: () -> Void = {}
    package var hostsChanged: (HostsTable) -> Void = { _ in }
    /// The servers of `resolvConf`; empty while they are not used.
    package private(set) var found: [Endpoint] = []
    package private(set) var hosts = HostsTable()

    private var settings: Settings?
    private let listening: [Endpoint]
    private let report: Report
    private let loop: EventLoop
    private var watch: FileWatch?
    private var said: Set<Endpoint> = []

    private static let resolvConfLimit = 64 * 1024
    /// The file in which systemd-resolved lists the servers it asks (systemd-resolved.service(8)).
    private static let resolvedServers = "/run/systemd/resolve/resolv.conf"
    private static let hostsLimit = 16 * 1024 * 1024

    /// - Parameter listening: the endpoints of the daemon itself.
    package init(listening: [Endpoint], loop: EventLoop, report: Report) {
        (self.listening, self.loop, self.report) = (listening, loop, report)
    }

    /// Reads the files that the settings name, without the callbacks, and follows them from now on.
    package func apply(_ new: Settings) {
        let old = settings
        guard old.map({ $0.fallback != new.fallback || $0.isResolvConfNeeded != new.isResolvConfNeeded }) ?? true else {
            return
        }
        settings = new
        watch?.stop()
        watch = nil
        let before = found
        // Whether a server leads back to this daemon may change with the servers that systemd-resolved asks.
        let resolvers = new.isResolvConfNeeded ? new.fallback.resolvConf + [Self.resolvedServers] : []
        let paths = resolvers + (new.fallback.hosts.isEmpty ? [] : [new.fallback.hosts])
        if !paths.isEmpty {
            watch = FileWatch(paths, in: loop, failed: report.cannotFollow) { [unowned self] in readFiles() }
        }
        (found, hosts) = (readServers(), readHosts())
        if old == nil || found != before { reportResolvers() }
    }

    package func stop() { watch?.stop() }

    /// The servers of a group: with the servers found by `resolvConf` in the place of that word, each once, and none
    /// that leads back to this daemon.
    package func servers(of group: Settings.Group) -> [Server] {
        var loops: [Loop] = []
        let servers = Self.servers(of: group, listening, found: found, loops: &loops)
        reportLoops(loops)
        return servers
    }

    private func readFiles() {
        let newServers = readServers()
        if newServers != found {
            found = newServers
            reportResolvers()
            serversChanged()
        }
        let newHosts = readHosts()
        if newHosts != hosts {
            hosts = newHosts
            hostsChanged(hosts)
        }
    }

    /// While a file cannot be read for want of descriptors, what was found before stays.
    private func readServers() -> [Endpoint] {
        guard let settings, settings.isResolvConfNeeded else { return [] }
        var isShort = false
        let (usable, loops) = Self.inResolvConf(settings.fallback, listening) { isShort = isShort || $0.isShortage }
        guard !isShort else {
            watch?.lookAgain()
            return found
        }
        reportLoops(loops)
        return usable
    }

    private func reportLoops(_ loops: [Loop]) {
        for (server, source) in loops where said.insert(server).inserted { report.loop(server, in: source) }
    }

    /// A server that leads back to this daemon, and the file or key that names it.
    package typealias Loop = (server: Endpoint, source: String)

    /// The servers of `[fallback]`, read once.
    package static func find(_ settings: Settings.Fallback, listening: [Endpoint]) -> (usable: [Server], loops: [Loop])
    {
        let found: (usable: [Endpoint], loops: [Loop]) =
            settings.group.entries.contains(.resolvConf) ? inResolvConf(settings, listening) : ([], [])
        var loops = found.loops
        return (servers(of: settings.group, listening, found: found.usable, loops: &loops), loops)
    }

    /// The servers of a group of these settings, read once.
    package static func servers(of group: Settings.Group, of settings: Settings) -> [Server] {
        var loops: [Loop] = []
        let listening = settings.listen.addresses
        return servers(
            of: group, listening, found: inResolvConf(settings.fallback, listening).usable, loops: &loops)
    }

    private static func servers(
        of group: Settings.Group, _ listening: [Endpoint], found: [Endpoint], loops: inout [Loop]
    ) -> [Server] {
        var servers: [Server] = []
        for entry in group.entries {
            switch entry {
            case .resolvConf: servers += found.map { Server($0) }
            case .server(let server):
                let (usable, leadingBack) = split(server.endpoints, listening)
                if leadingBack.isEmpty || !usable.isEmpty { servers.append(server) }
                loops += leadingBack.map { ($0, "\(group.path).servers") }
            }
        }
        var seen: Set<Server> = []
        return servers.filter { seen.insert($0).inserted }
    }

    /// The servers that `resolvConf` finds, read once.
    package static func inResolvConf(_ settings: Settings) -> [Endpoint] {
        inResolvConf(settings.fallback, settings.listen.addresses).usable
    }

    /// The servers of the first file of `resolvConf` that has a usable one.
    /// - Parameter failed: told why a file cannot be read.
    private static func inResolvConf(
        _ settings: Settings.Fallback, _ listening: [Endpoint], _ failed: (SystemError) -> Void = { _ in }
    ) -> (usable: [Endpoint], loops: [Loop]) {
        var loops: [Loop] = []
        for path in settings.resolvConf {
            // A missing file is the normal case: each kind of host has one of them.
            guard let servers = servers(of: path, failed) else { continue }
            let found = split(servers, listening)
            loops += found.loops.map { ($0, path) }
            if !found.usable.isEmpty { return (found.usable, loops) }
        }
        return ([], loops)
    }

    private static func split(_ servers: [Endpoint], _ listening: [Endpoint]) -> (usable: [Endpoint], loops: [Endpoint])
    {
        ResolverList.withoutLoops(
            servers, listening: listening, own: (try? Interfaces.addresses()) ?? [],
            resolvedAsks: self.servers(of: resolvedServers) ?? [])
    }

    /// The servers in a file; nil if it cannot be read.
    private static func servers(of path: String, _ failed: (SystemError) -> Void = { _ in }) -> [Endpoint]? {
        do throws(SystemError) {
            let text = try SystemFile.read(path, limit: resolvConfLimit)
            return ResolverList.parse(text.span)
        } catch {
            failed(error)
            return nil
        }
    }

    /// While the file cannot be read for want of descriptors, what it said before stays.
    private func readHosts() -> HostsTable {
        guard let settings else { return HostsTable() }
        var isShort = false
        let read = Self.hosts(of: settings) {
            isShort = $0.isShortage
            if !isShort { report.cannotRead(settings.fallback.hosts, $0) }
        }
        guard isShort else { return read }
        watch?.lookAgain()
        return hosts
    }

    /// What the hosts file of settings says, read once.
    /// - Parameter failed: told why it cannot be read, if it is there.
    package static func hosts(of settings: Settings, _ failed: (SystemError) -> Void = { _ in }) -> HostsTable {
        guard !settings.fallback.hosts.isEmpty else { return HostsTable() }
        do throws(SystemError) {
            let text = try SystemFile.read(settings.fallback.hosts, limit: hostsLimit)
            return HostsTable(parsing: text.span)
        } catch {
            if !error.isNotFound { failed(error) }
            return HostsTable()
        }
    }

    private func reportResolvers() {
        guard let settings else { return }
        let servers = servers(of: settings.fallback.group)
        report.localResolvers(servers, isNeeded: settings.isFallbackNeeded)
    }
}

extension Report {
    func localResolvers(_ servers: [Server], isNeeded: Bool) {
        if !servers.isEmpty {
            log.notice("local resolver \(servers.map(\.description).joined(separator: ", "))")
        } else if isNeeded {
            say(.warning, .noLocalResolver, about: "local resolvers", Self.noLocalResolver)
        }
    }

    func loop(_ server: Endpoint, in source: String) {
        log.warning("\(Self.loop(server, source))")
    }

    package static let noLocalResolver =
        "no local resolver found: what HTTPDNS does not answer gets SERVFAIL; name one in fallback.servers"

    package static func loop(_ server: Endpoint, _ source: String) -> String {
        "\(source) names \(server), which is this daemon itself or asks it: left out, it would ask itself for ever"
    }

    /// Why files that may change cannot be watched.
    package func cannotFollow(_ error: SystemError) {
        say(
            .warning, .systemFailed, about: "changes of files",
            "changed files are not noticed at once, but read again every 10 s: \(error)")
    }

    func cannotRead(_ path: String, _ error: SystemError) {
        log.warning("\(path) cannot be read, so nothing is answered from it: \(error)")
    }
}
