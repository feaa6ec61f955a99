public import Base
public import Configuration
public import DNSWire
import Log
import Transport

/// This machine from the view of programs that ask the daemon, for the command `host`.
public struct Host {
    private let settings: Settings
    private let changes = HostChanges()
    /// The address of the daemon at port 53 of loopback; nil if there is none.
    private let address: IPAddress?

    /// Why the command failed; the machine is as it was before, unless the text says otherwise.
    public enum Failed: Error, Equatable, Sendable, CustomStringConvertible {
        /// The daemon does not answer, or names do not resolve through it.
        case unreachable(String)
        /// A file, a program, or the configuration of this machine.
        case system(String)

        public var description: String {
            switch self {
            case .unreachable(let reason), .system(let reason): reason
            }
        }
    }

    /// How long names may fail to resolve after the change, since programs restart, in milliseconds.
    private static let patience: UInt32 = 10_000

    /// - Parameter settings: The settings of the daemon; ``disable`` needs none of them.
    public init(_ settings: Settings) {
        self.settings = settings
        address = Self.usable(settings).first
    }

    /// The loopback addresses at which the daemon listens at port 53.
    private static func usable(_ settings: Settings) -> [IPAddress] {
        settings.listen.addresses.filter { $0.port == port }.compactMap { endpoint in
            endpoint.address.isUnspecified
                ? endpoint.address.isIPv4 ? IPAddress.v4(127, 0, 0, 1) : IPAddress(v6: 0, 1)
                : endpoint.address.isLoopback ? endpoint.address : nil
        }
    }

    /// Throws if programs could not ask the daemon.
    public func checkAddress() throws(StartFailure) {
        if address == nil { throw .setting(key: "listen.addresses", Self.withoutAddress) }
    }

    private static let withoutAddress =
        "none of them is port 53 of loopback, where the programs of this machine can ask; add 127.0.0.1:53"

    private func needAddress() throws(Failed) -> IPAddress {
        guard let address else { throw .system("listen.addresses: \(Self.withoutAddress)") }
        return address
    }

    private static let port: UInt16 = 53

    // MARK: The present state

    /// The present state, and the changes that ``enable`` would make.
    public func show() throws(Failed) -> String {
        let facts = try facts()
        var lines = ["\(HostFacts.resolvConfPath) \(facts.words)."]
        if changes.isRecorded {
            lines.append("httpdnsd host enable has changed this machine; httpdnsd host disable takes it back.")
        }
        if let address, facts.asks(address) {
            lines += asking(address, facts)
        } else {
            let detail = address.map { ", which is at \($0)" } ?? ": listen.addresses: \(Self.withoutAddress)"
            lines.append("Programs do not ask this daemon\(detail).")
        }
        if changes.isRecorded {
            lines += Program.isRoot ? try disabling(nil) : ["What httpdnsd host disable would do is shown to root."]
        } else if let address, !facts.asks(address) {
            lines += try enabling(facts)
        }
        return lines.joined(separator: "\n")
    }

    /// The state if programs ask the daemon.
    private func asking(_ address: IPAddress, _ facts: HostFacts) -> [String] {
        var lines = ["Programs ask this daemon at \(address)."]
        do throws(Failed) {
            try askDaemon(Self.localhost)
        } catch {
            lines.append("It does not answer: \(error)")
        }
        if facts.startsAtBoot == false { lines.append(Self.notAtBoot) }
        if let others = others(facts) { lines.append(others) }
        return lines
    }

    /// A remark on other servers beside the daemon, if there are any.
    private func others(_ facts: HostFacts) -> String? {
        let others = facts.others(than: Self.usable(settings))
        guard !others.isEmpty else { return nil }
        let list = others.map { "\($0)" }.joined(separator: ", ")
        guard case .resolved = facts.keeper else {
            return "They ask \(list) as well, past this daemon, when it does not answer."
        }
        return "systemd-resolved asks \(list) as well, past this daemon: "
            + "a file in /etc/systemd/resolved.conf.d that sorts behind zz-httpdnsd.conf names it with DNS=, or resolvectl did."
    }

    /// The steps of ``enable``, with the texts that it would write.
    public func enabling() throws(Failed) -> String {
        try enabling(try facts(), withTexts: true).joined(separator: "\n")
    }

    /// The steps of ``disable``.
    public func disabling() throws(Failed) -> String { try disabling(Self.nothing).joined(separator: "\n") }

    /// - Parameter nothing: The line if there is nothing to undo.
    private func disabling(_ nothing: String?) throws(Failed) -> [String] {
        guard let record = try changes.record() else { return nothing.map { [$0] } ?? [] }
        return ["httpdnsd host disable would:"] + record.disable.map { "  " + record.words($0) }
    }

    private func enabling(_ facts: HostFacts, withTexts: Bool = false) throws(Failed) -> [String] {
        let address = try needAddress()
        do throws(Failed) {
            let plan = try HostPlan(facts, address: address)
            let steps = plan.enable.flatMap { ["  " + $0.words] + (withTexts ? $0.textLines : []) }
            return ["httpdnsd host enable would:"] + steps
        } catch {
            return ["httpdnsd host enable cannot be used here. \(error)."]
        }
    }

    /// A name that the daemon answers by itself.
    private static let localhost = Name("localhost")!
    private static let nothing = "httpdnsd host enable has changed nothing here that could be put back."
    private static let notAtBoot =
        "The daemon does not start with this machine, so no name would resolve then: systemctl enable httpdnsd"

    // MARK: Changes

    /// Makes the programs of this machine ask the daemon, or changes nothing.
    /// - Parameters:
    ///   - name: A name with addresses, which is looked up before and after the change.
    ///   - say: Called with each step.
    public func enable(_ name: Name, _ say: @escaping @Sendable (String) -> Void) throws(Failed) {
        try needRoot()
        let address = try needAddress()
        try askDaemon(name)
        if try changes.record() != nil {
            say("What an earlier httpdnsd host enable has changed is put back first.")
            _ = try changes.disable()
        }
        let facts = try facts()
        if facts.asks(address) {
            say("Programs ask the daemon at \(address) already; nothing was changed.")
            if let others = others(facts) { say(others) }
            return
        }
        let plan = try HostPlan(facts, address: address)
        say("\(HostFacts.resolvConfPath) \(facts.words).")
        do throws(Failed) {
            for step in plan.enable { say("  " + step.words) }
            try changes.enable(plan)
            try verify(name, address)
        } catch {
            let failures = try changes.disable()
            for failure in failures { say("\(failure)") }
            say("Everything is as it was.")
            throw error
        }
        say("\(name) resolves, and programs ask the daemon at \(address). httpdnsd host disable takes it back.")
        if facts.startsAtBoot == false { say(Self.notAtBoot) }
    }

    /// Restores the state before ``enable``.
    public func disable(_ say: @escaping @Sendable (String) -> Void) throws(Failed) {
        try needRoot()
        let isThere = try changes.record() != nil
        let failures = try changes.disable()
        for failure in failures { say("\(failure)") }
        guard isThere else { return say(Self.nothing) }
        say("Everything is as it was. \(HostFacts.resolvConfPath) \(try facts().words).")
    }

    private func needRoot() throws(Failed) {
        if !Program.isRoot { throw .system("this changes files of root's: type it as root") }
    }

    private func askDaemon(_ name: Name) throws(Failed) {
        let who = Endpoint(try needAddress(), port: Self.port)
        var asking = Settings()
        asking.listen.addresses = []
        var group = Settings.Group(name: "daemon")
        group.kind = .servers([.server(Server(who))])
        asking.upstreams = [group]
        let query = try Failed.ofSystem { () throws(StartFailure) in
            try DirectQuery(asking, group: group.name, ipv4: true, ipv6: true)
        }
        do throws(DirectQuery.Failed) {
            if try query.ask([name]).contains(where: \.hasAddresses) { return }
        } catch {
            throw .unreachable("the daemon must answer first: \(error); systemctl enable --now httpdnsd starts it")
        }
        throw .unreachable("the daemon at \(who) has no address of \(name); give a name that has one with --name")
    }

    /// Looks the name up as programs do.
    private func verify(_ name: Name, _ address: IPAddress) throws(Failed) {
        var waited: UInt32 = 0
        while true {
            let lookup = ["timeout", "5", "getent", "ahosts", "\(name)"]
            let code = try Failed.ofSystem { () throws(SystemError) in try changes.run(lookup) }
            if code == 0, try facts().asks(address) { break }
            guard waited < Self.patience else {
                throw .unreachable(
                    "\(name) does not resolve after the change: \(lookup.joined(separator: " ")) ended with \(code)")
            }
            Program.sleep(milliseconds: 500)
            waited += 500
        }
        if let others = others(try facts()) { throw .system(others) }
        guard settings.isFallbackNeeded else { return }
        let local = LocalReading(settings, [.resolvers])
        if local.servers(of: settings.fallback.group).usable.isEmpty { throw .unreachable(Report.noFallback) }
    }

    private func facts() throws(Failed) -> HostFacts {
        try Failed.ofSystem { () throws(SystemError) in try HostFacts(root: changes.root) }
    }
}

extension Host.Failed {
    static func ofSystem<T, F: Error>(_ work: () throws(F) -> T) throws(Host.Failed) -> T {
        do throws(F) { return try work() } catch { throw .system("\(error)") }
    }
}

extension HostFacts {
    /// `is written by hand and names 192.168.1.1`.
    fileprivate var words: String {
        let names = servers.isEmpty ? "names no server" : "names \(Self.words(servers))"
        switch keeper {
        case .hand: return resolvConf == .absent ? "is not there" : "is written by hand and \(names)"
        case .resolved(let isStub):
            let asked = Self.servers(resolvedServers)
            let whom = asked.isEmpty ? "" : ", which asks \(Self.words(asked))"
            return isStub ? "is kept by systemd-resolved\(whom)" : "is kept by systemd-resolved and \(names)"
        case .networkManager: return "is kept by NetworkManager and \(names)"
        case .resolvconf: return "is kept by resolvconf and \(names)"
        case .openresolv: return "is kept by openresolv and \(names)"
        case .mounted: return "is mounted, as in a container, and \(names)"
        case .program(let name): return "is kept by \(name) and \(names)"
        }
    }

    private static func words(_ servers: [Endpoint]) -> String {
        servers.map { server in "\(server.address)" + (server.zone.map { "%\($0)" } ?? "") }.joined(separator: ", ")
    }
}

extension HostRecord {
    /// The words for the undo of a step: the fate of a path, or the program to run.
    fileprivate func words(_ step: HostPlan.Step) -> String {
        guard case .restore(let path) = step else { return step.words }
        switch before[path] {
        case .folder: return "leave the folder \(path)"
        case .absent, nil: return "remove \(path)"
        case .file, .link: return step.words
        }
    }
}

extension HostPlan.Step {
    fileprivate var words: String {
        switch self {
        case .put(.folder, let path): "make the folder \(path), if it is not there"
        case .put(.link(let target), let path): "make \(path) a link to \(target)"
        case .put(_, let path): "write \(path)"
        case .run(let words): "run \(words.map { $0.contains(" ") ? "'\($0)'" : $0 }.joined(separator: " "))"
        case .restore(let path): "put back \(path)"
        }
    }

    /// The lines of a file's text, indented.
    fileprivate var textLines: [String] {
        guard case .put(.file(let octets, _, _, _), _) = self else { return [] }
        return String(decoding: octets, as: UTF8.self).split(separator: "\n").map { "    | \($0)" }
    }
}
