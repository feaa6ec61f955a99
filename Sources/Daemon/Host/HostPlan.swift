import Base
import Transport

/// The steps by which a host's programs come to ask the daemon, and the steps that undo them.
///
/// Each step is atomic, and between any two of them the host resolves names: through the daemon, or as before.
struct HostPlan: Sendable, Equatable {
    enum Step: Sendable, Equatable {
        case put(FileState, at: String)
        case run([String])
        /// Restores the state of a path before ``enable``.
        case restore(String)
    }

    var enable: [Step] = []
    var disable: [Step] = []
    /// What else a person must know of ``enable``.
    private(set) var remark: String?

    /// The file with the former servers of programs, which the daemon reads (`fallback.resolvConf`).
    static let copyPath = "/etc/httpdnsd/resolv.conf"
    /// Makes programs ask systemd-resolved.
    static let stubLink = FileState.link("../run/systemd/resolve/stub-resolv.conf")
    static let restartResolved = Step.run(["systemctl", "restart", "systemd-resolved"])

    /// The paths that change, in order.
    var paths: [String] {
        disable.compactMap { if case .restore(let path) = $0 { path } else { nil } }.reversed()
    }

    /// - Parameter address: The address of the daemon, at port 53.
    /// - Throws: Why this host's programs cannot be made to ask the daemon, with a remedy for a person.
    init(_ facts: HostFacts, address: IPAddress) throws(Host.Failed) {
        switch facts.keeper {
        case .hand: hand(facts, address)
        case .resolved(let isStub): resolved(address, isStub: isStub)
        case .networkManager: networkManager(facts, address)
        case .resolvconf: resolvconf(address)
        case .openresolv:
            throw .system(
                "openresolv keeps /etc/resolv.conf: write name_servers=\(address) into /etc/resolvconf.conf and type resolvconf -u, "
                    + "and name the network's own servers in fallback.servers")
        case .mounted:
            throw .system(
                "/etc/resolv.conf is mounted, as in a container: it is told whom it asks when it is started, as docker run --dns \(address) does"
            )
        case .program(let name):
            throw .system("\(name) keeps /etc/resolv.conf: make it name \(address) there, as its manual says")
        }
    }

    /// All possible undo steps of plans, of earlier versions too.
    static let known: [Step] = {
        var plan = HostPlan()
        let (facts, address) = (HostFacts(), IPAddress.v4(127, 0, 0, 1))
        plan.hand(facts, address)
        plan.resolved(address, isStub: false)
        plan.networkManager(facts, address)
        plan.resolvconf(address)
        return plan.disable + [.restore("/etc/systemd/resolved.conf.d/httpdnsd.conf")]
    }()

    private init() {}

    private mutating func hand(_ facts: HostFacts, _ address: IPAddress) {
        put(.folder, at: "/etc/httpdnsd")
        put(.text(facts.content), at: Self.copyPath)
        put(.text(Self.resolvConf(facts, address)), at: HostFacts.resolvConfPath)
        restoreAll()
    }

    /// systemd-resolved still answers programs, and asks the daemon for names that no link has for itself, over UDP
    /// whatever other files say. The file is the last one in its folder, since the servers of later files would be asked
    /// as well.
    private mutating func resolved(_ address: IPAddress, isStub: Bool) {
        put(.folder, at: "/etc/systemd/resolved.conf.d")
        put(
            .text(
                "# httpdnsd host enable\n[Resolve]\nDNS=\nDNS=\(address)\nDomains=~.\nDNSSEC=no\nDNSOverTLS=no\n"),
            at: "/etc/systemd/resolved.conf.d/zz-httpdnsd.conf")
        if !isStub { put(Self.stubLink, at: HostFacts.resolvConfPath) }
        enable.append(Self.restartResolved)
        // There is no such setting for one server.
        remark = "DNSOverTLS=no also holds for servers of links without a mode of their own (resolvectl dnsovertls)."
        restoreAll()
        disable.append(Self.restartResolved)
    }

    /// NetworkManager still writes its servers below `/run`, where the daemon finds them.
    private mutating func networkManager(_ facts: HostFacts, _ address: IPAddress) {
        let reload = Step.run(["systemctl", "reload", "NetworkManager"])
        put(.folder, at: "/etc/NetworkManager/conf.d")
        put(
            .text("# httpdnsd host enable\n[main]\ndns=none\n"), at: "/etc/NetworkManager/conf.d/httpdnsd.conf")
        enable.append(reload)
        put(.text(Self.resolvConf(facts, address)), at: HostFacts.resolvConfPath)
        restoreAll()
        disable.append(reload)
    }

    /// A hook writes the servers of the interfaces to a file for the daemon; the daemon is one more interface,
    /// `lo.httpdnsd`. The daemon also starts where resolvconf was removed since: `/etc/resolv.conf` goes on naming it.
    private mutating func resolvconf(_ address: IPAddress) {
        let list = "/run/resolvconf/httpdnsd.conf"
        let (hook, unit) = ("/etc/resolvconf/update.d/httpdnsd", "/etc/systemd/system/httpdnsd.service.d")
        let add = "echo nameserver \(address) | resolvconf -a lo.httpdnsd"
        put(
            .text(
                """
                #!/bin/sh
                # httpdnsd host enable
                cd /run/resolvconf/interface && find . -type f ! -name 'lo.*' -exec cat {} + > ../httpdnsd.conf

                """, mode: 0o755), at: hook)
        enable.append(.run(["resolvconf", "-u"]))
        put(.folder, at: "/etc/httpdnsd")
        put(.link(list), at: Self.copyPath)
        put(.folder, at: unit)
        put(
            .text(
                """
                # httpdnsd host enable
                [Service]
                ExecStartPost=-+/bin/sh -c '\(add)'
                ExecStopPost=-+resolvconf -d lo.httpdnsd

                """), at: unit + "/host.conf")
        enable.append(.run(["systemctl", "daemon-reload"]))
        enable.append(.run(["sh", "-c", add]))
        // First, programs ask the network's own servers again.
        disable.append(.run(["resolvconf", "-d", "lo.httpdnsd"]))
        restoreAll()
        disable += [.restore(list), .run(["systemctl", "daemon-reload"])]
    }

    private mutating func put(_ state: FileState, at path: String) { enable.append(.put(state, at: path)) }

    /// Undoes the changes in reverse order.
    private mutating func restoreAll() {
        disable += enable.reversed().compactMap { if case .put(_, let path) = $0 { .restore(path) } else { nil } }
    }

    /// Retains all lines but those of servers and of comments.
    private static func resolvConf(_ facts: HostFacts, _ address: IPAddress) -> String {
        let kept = facts.content.split(whereSeparator: \.isNewline).filter { line in
            !["nameserver", "#", ";", "options"].contains { line.hasPrefix($0) }
        }
        let options = facts.content.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("options") }
            .flatMap { $0.split { $0 == " " || $0 == "\t" }.dropFirst() }.filter { $0 != "trust-ad" && $0 != "edns0" }
        return
            (["# httpdnsd host enable; httpdnsd host disable puts back what was here", "nameserver \(address)"]
            + ["options " + (["edns0"] + options).joined(separator: " ")] + kept.map(String.init)).joined(
                separator: "\n")
            + "\n"
    }
}
