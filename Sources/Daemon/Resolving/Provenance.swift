import Configuration
import Log
import Logging

/// Where settings come from, as far as an operator wants to know it.
struct Provenance: Sendable {
    /// Nil for settings that no file gave.
    var origins: Settings.Origins?
    /// Proxies in the environment because of which accounts are not asked.
    var proxies: [ProxyFound] = []
}

/// A proxy in the environment that applies to an account's servers.
struct ProxyFound: Equatable {
    let variable: String
    /// The account's group, and the section of its keys.
    let account: String
    let section: String
    /// The group that is asked first in its place; nil: there is none, so the account is asked all the same.
    let next: String?

    /// One line for an operator.
    var text: String {
        let who = Self.noun(account)
        guard let next else {
            return
                "\(variable) is set, but \(section).thenTry names no other group to ask: \(who) is asked all the same"
        }
        return
            "\(variable) is set, and \(section).proxy is \"bypass\": \(who) is not asked, \(Self.noun(next)) answers its names"
    }

    private static func noun(_ group: String) -> String {
        switch group {
        case Settings.Group.httpdnsName: "HTTPDNS"
        case Settings.Group.fallbackName: "the local resolver"
        default: group
        }
    }
}

extension Report {
    func proxies(_ found: [ProxyFound]) {
        for proxy in found { log.notice("\(proxy.text)") }
    }
}

extension Settings {
    /// The settings as accounts' `proxy` changes them in an environment that may name a proxy for their services.
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
            let next = account.thenTry.first { variables[$0] == nil }
            found.append(ProxyFound(variable: variable, account: account.name, section: account.section, next: next))
            if next != nil { settings.bypass(account.name) }
        }
        return (settings, found)
    }
}
