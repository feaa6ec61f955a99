import Base
import Configuration
import Cryptography
import DNSWire
import Forwarding
import HTTPDNS
import Log
import Streams
import Transport
import Upstreams

// How settings become values of other modules; `Settings/UpstreamGroups.swift` makes groups, `Store.swift` the store.

extension Timing {
    init(_ settings: Settings) {
        self.init()
        reportsLookups = settings.accounts.contains { $0.enableReport || $0.debug }
        staleTTL = settings.cache.staleTTL
        minTTL = settings.cache.minTTL
        negativeMinTTL = settings.cache.negativeMinTTL
        maxTTL = settings.cache.maxTTL
        negativeTTL = settings.cache.negativeTTL
    }
}

extension Policy {
    init(
        _ settings: Settings, _ numbers: GroupNumbers, _ described: UpstreamGroups, _ names: NameLists,
        hosts: HostsTable, network: UInt64 = 0, reach: IPv4Reach = IPv4Reach()
    ) {
        let domains = settings.domains
        let takesAll = settings.httpdns != nil && domains.intercept.isEmpty && domains.interceptFile.isEmpty
        self.init(
            groups: described.groups, routes: described.routes, rules: names.rules,
            otherwise: takesAll ? .httpdns : .fallback, privateNames: numbers[Settings.Group.privateName],
            negativeTTL: Timing(settings).noRecordTTL,
            privateAllowed: domains.privateAddresses == .refuse ? domains.privateAllowed : nil, hosts: hosts,
            network: network)
        setFamilies(settings.families(numbers, reach))
        ranked = RankedNames(settings.cache.rank.map { ($0.name, $0.port) })
        let endpoints =
            Designation.Listener.all(settings.listen.tls, isHTTPS: false)
            + Designation.Listener.all(settings.listen.https, isHTTPS: true)
        // A reload may set a name before there are addresses, which need a restart.
        designation =
            endpoints.isEmpty
            ? nil : settings.listen.name.map { Designation(name: $0, endpoints, path: DNSOverHTTP.path.description) }
        setServerNames(settings, numbers)
    }

    /// - Returns: The names that lead in a circle.
    @discardableResult
    mutating func setServerNames(_ settings: Settings, _ numbers: GroupNumbers) -> [ServerCircle] {
        let names = settings.messageGroups.map { (numbers[$0.name], $0.named.compactMap(\.name)) }
        return setServerNames(
            Dictionary(uniqueKeysWithValues: names),
            reports: settings.accounts.compactMap { AbnormalReporter.server(of: $0)?.name },
            resolvers: settings.resolvers.map { Step(numbers[$0.name], hedgeAfter: settings.fallback.hedgeAfter) })
    }
}

extension ServiceAccess {
    init(_ account: Settings.Group) throws(StartFailure) {
        let credential = account.credential
        let (protocolAccount, keys): (any ServiceAccount, AccountKeys)
        do throws(RequestError) {
            keys = AccountKeys(
                account.section, names: account.namesKey, credential, fromFiles: account.secretsFromFiles)
            protocolAccount = try credential.account(
                routeIp: account.routeIp, routeIpEncrypted: account.routeIpEncrypted,
                authExpirySeconds: account.authExpirySeconds, timeout: account.serviceTimeout, traces: account.trace)
        } catch .badSecret(let key) {
            throw .setting(key: "\(account.section).\(key)", RequestError.badSecret(key: key).description)
        } catch {
            throw .setting(key: account.section, error.description)
        }
        let name = account.certificateName
        let security: Security =
            if credential.isHTTPS {
                .tls(
                    try TLSClientContext(account.tls, account.tlsSection, name, or: account.certificateAddress),
                    TLSTarget())
            } else {
                .plain
            }
        self.init(account: protocolAccount, keys, security, serverName: name, egress: account.egress)
    }
}

extension Settings.Group {
    /// The name that certificates must have, and that requests have as Host; nil for the dialled address.
    var certificateName: String? {
        let name = tls.serverName.isEmpty ? self.credential.provider.facts.certificateName : tls.serverName
        return name.isEmpty ? nil : name
    }

    /// An address that certificates may have instead of the name.
    fileprivate var certificateAddress: IPAddress? {
        tls.serverName.isEmpty ? self.credential.provider.facts.certificateAddress : nil
    }

    /// The milliseconds after which the service is asked to give a lookup up: the nearest value to `timeout` that the
    /// service allows, so that it ends lookups that are no longer awaited. Nil if the service has no such parameter.
    var serviceTimeout: Int? {
        self.credential.provider.facts.timeouts.map { min(max(timeout, $0.lowerBound), $0.upperBound) }
    }

    /// The key that assigns names to the group.
    fileprivate var namesKey: String { name == Self.httpdnsName ? "domains.intercept" : "\(section).domains" }
}

extension TLSClientContext {
    /// - Parameters:
    ///   - section: The section of the keys, for errors.
    ///   - serverName: The name that certificates must have; nil if each server has its own name.
    ///   - address: An address that certificates may have instead of the name.
    convenience init(
        _ tls: Settings.TLS, _ section: String, _ serverName: String? = nil, or address: IPAddress? = nil
    ) throws(StartFailure) {
        let policy = TLSPolicy(
            serverName: serverName, serverAddress: address, anchors: tls.anchors, anchorsOnly: tls.caOnly,
            pins: tls.pins,
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

extension Settings {
    /// The families that each account is asked for at this moment.
    func families(_ numbers: GroupNumbers, _ reach: IPv4Reach) -> [GroupID: Families] {
        accounts.reduce(into: [:]) {
            $0[numbers[$1.name]] = Families($1.addressType, reach)
        }
    }
}

extension Families {
    /// The families for `addressType`: "auto" follows the routes, and is both families while there is no route, so that
    /// answers exist when a route comes.
    init(_ addressType: Settings.Account.AddressType, _ reach: IPv4Reach = IPv4Reach()) {
        switch addressType {
        case .ipv4: self = .ipv4
        case .ipv6: self = .ipv6
        case .dual: self = .both
        case .auto:
            self = reach.leadsToIPv4 || reach.hasIPv4 == reach.hasIPv6 ? .both : reach.hasIPv4 ? .ipv4 : .ipv6
        }
    }
}

extension Report {
    func clockUnset() {
        log.warning(
            "the clock stands before this version was made: until it is right, certificates are judged by all but their dates, or refused where whenClockUnset says so"
        )
    }

    func service(_ settings: Settings) {
        if settings.httpdns == nil { log.notice("\(Self.noService(settings))") }
        for account in settings.accounts where !account.isBypassed {
            let credential = account.credential
            let servers = account.dnsIp.map(\.description).joined(separator: ", ")
            let who = account.name == Settings.Group.httpdnsName ? "HTTPDNS" : "\(account.name): HTTPDNS"
            let provider = credential.provider == .tencent ? "" : " of \(credential.provider.facts.title)"
            log.notice("\(who)\(provider) by \(credential.encryption.rawValue) at \(servers)")
            if let limits = Self.limits(of: account) { log.warning("\(limits)") }
        }
        for words in settings.groups.compactMap({ Self.barred($0) }) { log.warning("\(words)") }
        for words in Self.withoutEffect(settings) { log.warning("\(words)") }
    }

    /// Logs remarks on the clients that may ask.
    /// - Parameter sockets: The sockets in use: the service manager may pass others than the settings name.
    func allowed(_ allow: [Network], at sockets: Sockets) {
        if let words = Self.closedToThisHost(allow, at: sockets.endpoints) { log.warning("\(words)") }
        for words in Self.open(allow, at: sockets.endpoints, overUDP: sockets.datagramEndpoints) {
            log.warning("\(words)")
        }
    }

    /// The networks of `listen.allow` that let clients from outside ask, in words.
    /// - Parameter addresses: Those of all listeners; with several of other hosts, the first is named.
    static func open(_ allow: [Network], at addresses: [Endpoint], overUDP: [Endpoint]) -> [String] {
        guard let address = addresses.first(where: { !$0.address.isLoopback }) else { return [] }
        // Over TLS no packet goes to an address that has not asked.
        let harm =
            overUDP.contains(address)
            ? "and can use it to flood others with answers" : "and what they look up counts as yours"
        return allow.filter { $0.prefixLength < ($0.address.isIPv4 ? 8 : 4) }.map {
            "listen.allow has \($0), and \(address) is not loopback: everyone who reaches it is answered, \(harm); "
                + "name the networks that may ask"
        }
    }

    /// A remark that programs of this host may not ask, although a listener has a loopback address.
    static func closedToThisHost(_ allow: [Network], at addresses: [Endpoint]) -> String? {
        let closed = [IPAddress.v4(127, 0, 0, 1), IPAddress(v6: 0, 1)].filter { loopback in
            addresses.contains {
                $0.address.isIPv4 == loopback.isIPv4 && ($0.address.isLoopback || $0.address.isUnspecified)
            } && !allow.contains { $0.contains(loopback) }
        }
        guard let first = closed.first else { return nil }
        return
            "listen.allow has no \(closed.map(\.description).joined(separator: " and no ")): programs of this host are refused; "
            + "add \(first.isIPv4 ? "127.0.0.0/8" : "::1") if they are to ask"
    }

    /// A remark that an account bills for each name; nil if it does not.
    static func billsAll(_ settings: Settings) -> String? {
        guard let account = settings.httpdns, !account.isBypassed, settings.domains.intercept.isEmpty,
            settings.domains.interceptFile.isEmpty
        else { return nil }
        return "domains.intercept is empty: HTTPDNS is asked for every name that no other group takes, and bills each"
    }

    /// The accounts behind `[private]`, groups behind a `[fallback]` that no name goes to, and the patterns of groups that
    /// match only names for which no group is asked, in words.
    static func withoutEffect(_ settings: Settings) -> [String] {
        settings.accounts.filter { settings.privateNames.thenTry.contains($0.name) }.map {
            "private.thenTry names \($0.name) without effect: no HTTPDNS account is asked for a private name"
        }
            + (settings.isFallbackAsked || settings.fallback.group.thenTry.isEmpty
                ? []
                : ["fallback.thenTry has no effect: with httpOnly no name of its own goes to fallback"])
            + settings.upstreams.flatMap { group in
                group.domains.filter { DomainRules.areNeverAsked($0) }.map {
                    "\(group.section).domains names \($0) without effect: it is answered here, and no server is asked for it"
                }
            }
    }

    /// Why no socket of a group can leave this machine now, in words; nil if a socket can.
    static func barred(_ group: Settings.Group) -> String? {
        do throws(SystemError) {
            try group.egress.check()
            return nil
        } catch {
            return "no server of [\(group.section)] can be asked: \(error)"
        }
    }

    /// The right that a mark needs, in words; nil if there is no mark.
    static func right(_ group: Settings.Group) -> String? {
        guard group.egress.mark > 0 else { return nil }
        return
            "\(group.section).mark needs CAP_NET_ADMIN, which the unit gives to the daemon only by a drop-in; without it, no "
            + "server of the group is asked"
    }

    /// The protection that the credential lacks, in words; nil for https.
    static func limits(of account: Settings.Group) -> String? {
        let prefix = account.name == Settings.Group.httpdnsName ? "" : "\(account.section): "
        return switch account.credential.encryption {
        case .https: nil
        case .aes:
            prefix
                + "encryptType \"aes\" hides names and proves nothing: an attacker on the path can repeat old answers, write those "
                + "of short names, and give one name's for another that differs in its first 16 characters alone; "
                + "only \"https\" proves who answers"
        case .des:
            prefix
                + "encryptType \"des\" hides names from casual observers only and proves nothing: an attacker on the path can repeat old "
                + "answers, and put new ones together from pieces of them; only \"https\" proves who answers"
        }
    }

    static func noService(_ settings: Settings) -> String {
        let noun = settings.fallback.group.title
        return settings.upstreams.isEmpty
            ? "no [httpdns] section: \(noun) answers everything"
            : "no [httpdns] section: \(noun) answers what no [upstreams] group takes"
    }
}
