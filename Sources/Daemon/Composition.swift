import Base
import Configuration
import Counters
import Cryptography
import DNSCache
import DNSWire
import Forwarding
import HTTPDNS
import Log
import Logging
import Transport
import Upstreams

// How settings become parts: the one file in which keys of the configuration meet the values they set.

extension Timing {
    init(_ settings: Settings) {
        self.init()
        reportsLookups = settings.httpdns?.enableReport ?? false
        staleTTL = settings.cache.staleTTL
        minTTL = settings.cache.minTTL
        maxTTL = settings.cache.maxTTL
        negativeTTL = settings.cache.negativeTTL
    }
}

extension Policy {
    init(
        _ settings: Settings, groups: [UpstreamGroup], routes: [GroupID: [Step]], _ names: NameLists, hosts: HostsTable
    ) {
        let domains = settings.domains
        let takesAll = settings.httpdns != nil && domains.intercept.isEmpty && domains.interceptFile.isEmpty
        self.init(
            groups: groups, routes: routes, rules: names.rules, otherwise: takesAll ? .httpdns : .fallback,
            negativeTTL: settings.cache.negativeTTL,
            privateAllowed: domains.privateAddresses == .refuse ? domains.privateAllowed : nil, hosts: hosts)
        families = Families(settings)
    }

    /// Whether upstreams may be asked about a name: not if the daemon answers itself, as from the hosts file.
    func mayBeAsked(_ name: Name) -> Bool {
        // The daemon answers for both families or for neither.
        if case .answer = route(name, .a) { false } else { true }
    }
}

extension Settings {
    /// A digest of the settings that answers depend on: which groups are asked for which names, with which client
    /// subnet, which addresses are removed, and whose AD bit counts.
    func cacheContext(_ names: NameLists) -> UInt64 {
        let route =
            httpdns.map { "\($0.routeIp.map(\.description) ?? "-") \($0.routeIpEncrypted) \($0.httpOnly)" } ?? "none"
        // Nothing is added where no addresses are removed, so that files from before this setting stay valid.
        let addresses = domains.privateAddresses == .refuse ? "|refuse \(domains.privateAllowed)" : ""
        var hash = FNV()
        hash.add("\(route)|\(domains.intercept)|\(domains.bypass)\(addresses)|\(fallback.trustAD)")
        // Likewise where there are only the two groups that always exist, and no files of names.
        let isUsualWay = (httpdns?.thenTry ?? []).allSatisfy { $0 == Group.fallbackName } && fallback.thenTry.isEmpty
        if !upstreams.isEmpty || !names.paths.isEmpty || fallback.routeIp != nil || !isUsualWay {
            hash.add("|\(names.fingerprint)|\(ways)|\(whoseWord)")
        }
        return hash.value
    }

    /// Which groups are asked after which: when this changes, names may have to go elsewhere.
    var ways: [String] {
        (httpdns.map { ["httpdns \($0.thenTry) \($0.thenTryOn.map(\.rawValue).sorted())"] } ?? [])
            + (upstreams + [fallback.group]).map { group in
                "\(group.name) \(group.domains) \(group.except) \(group.thenTry) "
                    + "\(group.thenTryOn.map(\.rawValue).sorted())"
            }
    }

    /// The client subnet and trust in AD of each group that is asked with messages.
    var whoseWord: [String] {
        (upstreams + [fallback.group]).map { group in
            "\(group.name) \(group.routeIp.map(\.description) ?? "-") \(group.trustAD)"
        }
    }

    /// The settings as `httpdns.proxy` changes them in an environment that may name a proxy for the service.
    func applyingProxy(in environment: [String: String]) -> (settings: Settings, found: ProxyFound?) {
        guard let httpdns, httpdns.proxy == .bypass else { return (self, nil) }
        let proxy = ProxyEnvironment(environment)
        let variable = httpdns.dnsIp.lazy.compactMap {
            proxy.variable(for: $0, isSecure: httpdns.credential.isHTTPS, serverName: tls.serverName)
        }.first
        guard let variable else { return (self, nil) }
        var settings = self
        if !httpdns.httpOnly { settings.httpdns = nil }
        return (settings, ProxyFound(variable: variable, bypassesService: !httpdns.httpOnly))
    }
}

extension ForwarderLoop {
    /// Starts to fetch the list of service addresses, if `confIp` names servers.
    func followServiceList(at now: Tick) {
        serviceList?.close()
        serviceList = nil
        guard let httpdns = settings.httpdns, !httpdns.confIp.isEmpty, let access = carriers.account?.access else {
            return
        }
        let list = ServiceList(
            httpdns, serverName: settings.tls.serverName, account: access.account, tls: access.tls, loop: loop,
            report: report, at: now)
        list.changed = { [unowned self] in
            services = $0.map { Server($0, .account) }
            lookUpServers()
            replaceServers(of: .httpdns, services)
        }
        serviceList = list
    }

    func makeReporter(_ settings: Settings) throws(StartFailure) -> AbnormalReporter? {
        guard let httpdns = settings.httpdns, httpdns.enableReport else { return nil }
        return try AbnormalReporter(
            httpdns, loop: loop, localServers: { [unowned self] in plainResolvers }, report: report)
    }
}

extension ForwarderLoop {
    /// The local resolvers of plain DNS that are in use.
    private var plainResolvers: [Endpoint] {
        local.servers(of: settings.fallback.group).filter { $0.kind == .plain }.flatMap(\.endpoints)
    }
}

extension ServiceUpstream {
    convenience init(_ settings: Settings.HTTPDNS, _ tls: Settings.TLS, loop: EventLoop) throws(StartFailure) {
        self.init(loop: loop, access: try Access(settings, tls))
    }
}

extension ServiceUpstream.Access {
    init(_ settings: Settings.HTTPDNS, _ tls: Settings.TLS) throws(StartFailure) {
        let account: ServiceAccount
        do throws(RequestError) {
            account = try ServiceAccount(settings)
        } catch {
            throw .setting(key: "httpdns", error.description)
        }
        self.init(
            account: account, tls: try TLSClientContext?(settings, tls),
            serverName: tls.serverName.isEmpty ? nil : tls.serverName)
    }
}

extension ServiceAccount {
    convenience init(_ settings: Settings.HTTPDNS) throws(RequestError) {
        let credential: ServiceCredential =
            switch settings.credential {
            case .https(let token): .https(token: token.bytes)
            case .aes(let id, let key): .aes(id: id, key: key.bytes)
            case .des(let id, let key): .des(id: id, key: key.bytes)
            }
        try self.init(
            credential, routeIp: settings.routeIp, routeIpEncrypted: settings.routeIpEncrypted,
            authExpirySeconds: settings.authExpirySeconds)
    }
}

extension TLSClientContext? {
    /// Nil unless the account uses https.
    init(_ settings: Settings.HTTPDNS, _ tls: Settings.TLS) throws(StartFailure) {
        guard settings.credential.isHTTPS else {
            self = nil
            return
        }
        self = try TLSClientContext(tls, "tls", tls.serverName.isEmpty ? nil : tls.serverName)
    }
}

extension TLSClientContext {
    /// - Parameters:
    ///   - section: the section of the keys, for errors.
    ///   - serverName: the name that certificates must have; nil: each server gives its own.
    convenience init(_ tls: Settings.TLS, _ section: String, _ serverName: String? = nil) throws(StartFailure) {
        let policy = TLSPolicy(
            serverName: serverName, anchors: tls.anchors, anchorsOnly: tls.caOnly, pins: tls.pins,
            validatesName: tls.validateDomain,
            clientCertificate: tls.clientCertificateBytes.map { ($0, tls.clientCertificatePassword?.bytes ?? []) },
            refusesUnsetClock: tls.whenClockUnset == .refuse)
        do throws(TLSError) {
            try self.init(policy)
        } catch {
            throw .setting(key: "\(section).\(error.setting)", error.description)
        }
    }
}

extension TLSError {
    /// The key of `[tls]` with whose value no context could be made.
    fileprivate var setting: String {
        switch self {
        case .serverName: "serverName"
        case .anchorsUnreadable: "caFile"
        case .namelessWithoutAnchors: "validateDomain"
        case .pinLength: "pins"
        case .clientCertificatePassword: "clientCertificatePasswordFile"
        default: "clientCertificate"
        }
    }
}

extension Families {
    /// The families that HTTPDNS is asked for.
    init(_ settings: Settings) { self.init(settings.httpdns?.addressType ?? .dual) }

    /// The families for `addressType` at this moment: "auto" follows the present routes, and asks for both families
    /// while there is none, so that answers are there when one comes.
    init(_ addressType: Settings.HTTPDNS.AddressType) {
        switch addressType {
        case .ipv4: self = .ipv4
        case .ipv6: self = .ipv6
        case .dual: self = .both
        case .auto:
            let routes = Routes.families()
            self = routes.ipv4 == routes.ipv6 ? .both : routes.ipv4 ? .ipv4 : .ipv6
        }
    }
}

extension Report {
    func service(_ settings: Settings) {
        guard let settings = settings.httpdns else {
            return log.notice("\(Self.noService(settings))")
        }
        let servers = settings.dnsIp.map(\.description).joined(separator: ", ")
        log.notice("HTTPDNS by \(settings.credential.name) at \(servers)")
        if let limits = Self.limits(of: settings.credential) { log.warning("\(limits)") }
    }

    /// The protection that the credential lacks, in words; nil for https.
    static func limits(of credential: Settings.HTTPDNS.Credential) -> String? {
        switch credential {
        case .https: nil
        case .aes:
            "encryptType \"aes\" hides names and proves nothing: whoever is on the path can repeat old answers, write those "
                + "of short names, and give one name's for another that differs in its first 16 characters alone; "
                + "\"https\" proves"
        case .des:
            "encryptType \"des\" hides names from a passer-by only and proves nothing: whoever is on the path can repeat old "
                + "answers, and put new ones together from pieces of them; \"https\" proves"
        }
    }

    static func noService(_ settings: Settings) -> String {
        let names = settings.upstreams.isEmpty ? "everything" : "what no [upstreams] group takes"
        return "no [httpdns] section: the local resolver answers \(names)"
    }
}

extension Settings.HTTPDNS.Credential {
    var name: String {
        switch self {
        case .https: "https"
        case .aes: "aes"
        case .des: "des"
        }
    }
}
