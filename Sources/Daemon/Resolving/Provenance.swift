import Base
import Configuration
import Log

/// The source of settings, for an operator.
struct Provenance: Sendable {
    /// Nil if no file gave the settings.
    var origins: Settings.Origins?
    /// Proxies in the environment that keep accounts from being asked.
    var proxies: [ProxyFound] = []
}

/// A proxy in the environment that applies to an account's servers.
struct ProxyFound: Equatable {
    let variable: String
    /// The account's group.
    let group: Settings.Group
    /// The group that is asked first instead; nil if there is none, so the account is still asked.
    let next: Settings.Group?

    /// One line for an operator.
    var text: String {
        let (who, section) = (group.title, group.section)
        guard let next else {
            return
                "\(variable) is set, but \(section).thenTry names no other group to ask: \(who) is asked all the same"
        }
        return
            "\(variable) is set, and \(section).proxy is \"bypass\": \(who) is not asked, \(next.title) answers its names"
    }
}

extension Report {
    func proxies(_ found: [ProxyFound]) {
        for proxy in found { log.notice("\(proxy.text)") }
    }
}

extension Settings {
    /// The settings after accounts' `proxy` was applied in an environment that may name a proxy for their services.
    func applyingProxy(in environment: [String: String]) -> (settings: Settings, found: [ProxyFound]) {
        let proxy = ProxyEnvironment(environment)
        var variables: [String: String] = [:]
        for account in accounts where account.proxy == .bypass {
            variables[account.name] =
                account.dnsIp.lazy.compactMap {
                    proxy.variable(
                        for: $0, isSecure: account.credential.isHTTPS,
                        serverName: account.certificateName ?? "")
                }.first
        }
        var (settings, found): (Settings, [ProxyFound]) = (self, [])
        for account in accounts {
            guard let variable = variables[account.name] else { continue }
            let name = account.thenTry.first { variables[$0] == nil }
            let next = groups.first { $0.name == name }
            found.append(ProxyFound(variable: variable, group: account, next: next))
            if next != nil { settings.bypass(account.name) }
        }
        return (settings, found)
    }
}
