public import Base
public import Configuration
public import DNSWire
import Log
import Transport

/// This machine from the view of programs that ask the daemon, for the command `host`.
public struct Host {
    private let settings: Settings
    private let changes = HostChanges()

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
    public init(_ settings: Settings) { self.settings = settings }

    /// Throws if programs could not ask the daemon.
    public func checkAddress() throws(StartFailure) {
        guard HostDaemon.listed(settings).isEmpty, HostDaemon(settings).address == nil else { return }
        throw .setting(key: "listen.addresses", Self.withoutAddress)
    }

    private static let withoutAddress =
        "none of them is port 53 of loopback, where the programs of this machine can ask; add 127.0.0.1:53"

    private static func needAddress(_ daemon: HostDaemon) throws(Failed) -> IPAddress {
        guard let address = daemon.address else { throw .system("listen.addresses: \(withoutAddress)") }
        return address
    }

    // MARK: The present state

    /// The present state, and the changes that ``enable`` would make.
    public func show() throws(Failed) -> String {
        let facts = try facts()
        let daemon = HostDaemon(settings)
        let asked = daemon.address.flatMap { facts.asks($0) ? $0 : nil }
        var lines = ["\(HostFacts.resolvConfPath) \(facts.words)."]
        if changes.isRecorded {
            lines.append("httpdnsd host enable has changed this machine; httpdnsd host disable takes it back.")
        }
        if let asked, daemon.answerer != .otherProgram {
            lines += asking(asked, daemon, facts)
        } else {
            lines.append("Programs do not ask this daemon\(Self.location(daemon)).")
        }
        if changes.isRecorded {
            lines += Program.isRoot ? try disabling(nil) : ["What httpdnsd host disable would do is shown to root."]
        } else if let address = daemon.address, asked == nil {
            lines += enabling(facts, address)
        }
        return lines.joined(separator: "\n")
    }

    /// The words for the location of a daemon that programs do not ask, or why they could not ask it.
    private static func location(_ daemon: HostDaemon) -> String {
        guard let address = daemon.address else { return ": listen.addresses: \(withoutAddress)" }
        switch daemon.answerer {
        case .otherProgram, .refuses: return daemon.failure.map { ": \($0)" } ?? ""
        case .daemon, .nothing, nil: return ", which is at \(address)"
        }
    }

    /// The state if programs ask the daemon.
    private func asking(_ address: IPAddress, _ daemon: HostDaemon, _ facts: HostFacts) -> [String] {
        var lines = ["Programs ask this daemon at \(address)."]
        if let failure = daemon.failure { lines.append("It does not answer: \(failure)") }
        if facts.startsAtBoot == false { lines.append(Self.notAtBoot) }
        if let others = others(than: daemon, facts) { lines.append(others) }
        return lines
    }

    /// A remark on other servers beside the daemon, if there are any.
    private func others(than daemon: HostDaemon, _ facts: HostFacts) -> String? {
        let others = facts.others(than: daemon.addresses)
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
        let address = try Self.needAddress(HostDaemon(settings))
        return enabling(try facts(), address, withTexts: true).joined(separator: "\n")
    }

    /// The steps of ``disable``.
    public func disabling() throws(Failed) -> String { try disabling(Self.nothing).joined(separator: "\n") }

    /// - Parameter nothing: The line if there is nothing to undo.
    private func disabling(_ nothing: String?) throws(Failed) -> [String] {
        guard let record = try changes.record() else { return nothing.map { [$0] } ?? [] }
        return ["httpdnsd host disable would:"] + record.disable.map { "  " + record.words($0) }
    }

    private func enabling(_ facts: HostFacts, _ address: IPAddress, withTexts: Bool = false) -> [String] {
        do throws(Failed) {
            let plan = try HostPlan(facts, address: address)
            let steps = plan.enable.flatMap { ["  " + $0.words] + (withTexts ? $0.textLines : []) }
            return ["httpdnsd host enable would:"] + steps + (plan.remark.map { [$0] } ?? [])
        } catch {
            return ["httpdnsd host enable cannot be used here. \(error)."]
        }
    }

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
        let daemon = HostDaemon(settings)
        let address = try Self.needAddress(daemon)
        if let failure = daemon.failure { throw .unreachable(failure) }
        try askDaemon(name, at: address)
        if let record = try changes.record() {
            say("What an earlier httpdnsd host enable has changed is put back first.")
            try putBack(record, say, verify: verifyUnasked)
        }
        let facts = try facts()
        if facts.asks(address) {
            say("Programs ask the daemon at \(address) already; nothing was changed.")
            if let others = others(than: daemon, facts) { say(others) }
            return
        }
        let plan = try HostPlan(facts, address: address)
        say("\(HostFacts.resolvConfPath) \(facts.words).")
        do throws(Failed) {
            for step in plan.enable { say("  " + step.words) }
            try changes.enable(plan)
            try verify(name, daemon, address)
        } catch {
            say(try putBack(try changes.record(), say))
            throw error
        }
        say("\(name) resolves, and programs ask the daemon at \(address). httpdnsd host disable takes it back.")
        if let remark = plan.remark { say(remark) }
        if facts.startsAtBoot == false { say(Self.notAtBoot) }
    }

    /// Restores the state before ``enable``.
    public func disable(_ say: @escaping @Sendable (String) -> Void) throws(Failed) {
        try needRoot()
        let record = try changes.record()
        let result = try putBack(record, say) { () throws(Failed) in if record != nil { try verifyUnasked() } }
        guard record != nil else { return say(Self.nothing) }
        say("\(result) \(HostFacts.resolvConfPath) \(try facts().words).")
    }

    /// Fails if programs still ask this daemon: a program that kept the file, and was removed since, has left it as it
    /// was then.
    private func verifyUnasked() throws(Failed) {
        let facts = try facts()
        guard facts.servers.first?.address.isLoopback ?? false else { return }
        let daemon = HostDaemon(settings)
        guard let address = daemon.address, facts.asks(address), daemon.answerer != .otherProgram else { return }
        throw .system(
            "programs still ask this daemon at \(address): write the network's own servers into \(HostFacts.resolvConfPath)"
        )
    }

    /// Undoes the recorded changes, and reports programs that failed and the file that stays.
    /// - Parameter verify: Called before the record is removed, which stays if it throws.
    /// - Returns: The result, as a sentence.
    @discardableResult
    private func putBack(
        _ record: HostRecord?, _ say: (String) -> Void, verify: () throws(Failed) -> Void = {}
    ) throws(Failed) -> String {
        for failure in try changes.undo() { say("\(failure)") }
        try verify()
        try changes.forget()
        guard let record, record.leavesResolvConf else { return "Everything is as it was." }
        say("\(HostFacts.resolvConfPath) was changed since and stays.")
        return "Everything else is as it was."
    }

    private func needRoot() throws(Failed) {
        if !Program.isRoot { throw .system("this changes files of root's: type it as root") }
    }

    private func askDaemon(_ name: Name, at address: IPAddress) throws(Failed) {
        let query = try Failed.ofSystem { () throws(StartFailure) in try HostDaemon.query(address) }
        let (results, failure) = query.ask([name])
        let who = Endpoint(address, port: HostDaemon.port)
        if let failure {
            throw .unreachable("the daemon at \(who) does not resolve \(name): \(failure); httpdnsd status says more")
        }
        if results.contains(where: \.hasAddresses) { return }
        throw .unreachable("the daemon at \(who) has no address of \(name); give a name that has one with --name")
    }

    /// Looks the name up as programs do.
    private func verify(_ name: Name, _ daemon: HostDaemon, _ address: IPAddress) throws(Failed) {
        var waited: UInt32 = 0
        while true {
            let lookup = ["timeout", "5", "getent", "ahosts", "\(name)"]
            let code = try Failed.ofSystem { () throws(SystemError) in try changes.run(lookup) }
            let facts = try facts()
            if code == 0, facts.asks(address) { break }
            guard waited < Self.patience else {
                throw .unreachable(
                    code == 0
                        ? "programs do not ask the daemon after the change: \(HostFacts.resolvConfPath) \(facts.words)"
                        : "\(name) does not resolve after the change: \(lookup.joined(separator: " ")) ended with \(code)"
                )
            }
            Program.sleep(milliseconds: 500)
            waited += 500
        }
        if let others = others(than: daemon, try facts()) { throw .system(others) }
        guard settings.isFallbackNeeded else { return }
        let own = daemon.addresses.map { Endpoint($0, port: HostDaemon.port) }
        let local = LocalReading(settings, listening: settings.listen.everyAddress + own, [.resolvers])
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
        if path == HostFacts.resolvConfPath, leavesResolvConf { return "leave \(path), which was changed since" }
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
