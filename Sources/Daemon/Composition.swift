import Addresses
import Configuration
import Cryptography
import DNSCache
import Forwarding
import HTTPDNS
import Transport

// From settings to parts: the one place where a key of the configuration meets what it sets.

extension Forwarder where Client: Sendable {
    init(_ settings: Settings, _ local: LocalServers, _ cache: DNSCache) {
        let httpdns = settings.httpdns
        var timing = Timing()
        timing.serviceTimeout = httpdns?.timeout ?? timing.serviceTimeout
        timing.resolverTimeout = settings.fallback.timeout
        timing.batch = httpdns?.batch ?? timing.batch
        timing.minTTL = settings.cache.minTTL
        timing.maxTTL = settings.cache.maxTTL
        timing.negativeTTL = settings.cache.negativeTTL
        self.init(
            policy: Policy(
                hasService: httpdns != nil, httpOnly: httpdns?.httpOnly ?? false,
                negativeTTL: settings.cache.negativeTTL, intercept: settings.domains.intercept,
                bypass: settings.domains.bypass, hosts: local.hosts),
            timing: timing, serviceServers: httpdns?.dnsIp.count ?? 0, resolverServers: local.servers.count,
            cache: cache)
    }
}

extension ServiceUpstream {
    convenience init(
        _ settings: Settings.HTTPDNS, _ tls: Settings.TLS, loop: EventLoop
    ) throws(StartFailure) {
        let account: ServiceAccount
        do throws(RequestError) {
            account = try ServiceAccount(settings)
        } catch {
            throw .setting(key: "httpdns", error.description)
        }
        let serverName = tls.serverName.isEmpty ? nil : tls.serverName
        self.init(
            loop: loop, servers: settings.dnsIp, account: account, tls: try TLSClientContext?(settings, tls),
            serverName: serverName)
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
        try self.init(credential, routeIp: settings.routeIp, routeIpEncrypted: settings.routeIpEncrypted)
    }
}

extension TLSClientContext? {
    /// Nil unless the account is asked over https.
    init(_ settings: Settings.HTTPDNS, _ tls: Settings.TLS) throws(StartFailure) {
        guard case .https = settings.credential else {
            self = nil
            return
        }
        let policy = TLSPolicy(
            serverName: tls.serverName.isEmpty ? nil : tls.serverName, anchors: tls.anchors, anchorsOnly: tls.caOnly)
        do throws(TLSError) {
            self = try TLSClientContext(policy)
        } catch .serverName(let name) {
            throw .setting(key: "tls.serverName", TLSError.serverName(name).description)
        } catch {
            throw .setting(key: "tls.caFile", error.description)
        }
    }
}
