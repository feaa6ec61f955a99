import Base
import Configuration
import DNSWire
import Names

/// What the settings of a group decide, in the parts that matter for different things. Whoever wants to know what a reload, a
/// restart or another daemon of the fleet has changed compares these, never keys.
struct GroupIdentity: Sendable, Equatable {
    /// Its names, the groups asked after it and the reasons for that, and the address families that are asked for. By another
    /// one, questions go elsewhere.
    let routing: Routing
    /// How its servers are asked, and how they prove who they are. By another one, connections end, and what is known of the
    /// servers is forgotten.
    let access: Access
    /// Of an account: the servers of `dnsIp`, those of `confIp`, and whether a proxy has it left out.
    let services: [[Endpoint]]
    /// Of an account: where abnormal lookups are reported; the outer nil: nowhere.
    let reports: Settings.HTTPDNS.ReportURL??

    private let kind: [String]
    private let network: String
    private let isTrusted: Bool
    private let signed: String
    private let customer: [UInt8]

    struct Routing: Sendable, Equatable {
        var domains, except: [DomainPattern]
        var thenTry: [String]
        var thenTryOn: Set<Settings.Group.Reason>
        /// Of an account.
        var addressType: Settings.HTTPDNS.AddressType?
        var isBypassed = false

        init(_ group: Settings.Group?, thenTry: [String], on reasons: Set<Settings.Group.Reason>) {
            (domains, except) = (group?.domains ?? [], group?.except ?? [])
            (self.thenTry, thenTryOn) = (thenTry, reasons)
        }
    }

    enum Access: Sendable, Equatable {
        /// With DNS messages; nil: none of the servers is encrypted.
        case messages(Settings.TLS?)
        case account(
            Settings.HTTPDNS.Credential, routeIp: IPAddress?, isEncrypted: Bool, expirySeconds: Int, Settings.TLS)
    }

    /// For whose network it is asked, whose AD bit counts, and who gets its answers. By another one, its answers are wrong.
    /// The same over restarts, as `cache.file` needs it.
    var trustFingerprint: String { "\(network.isEmpty ? "-" : network) \(isTrusted)\(signed)" }

    /// What decides its answers beside the question, for the store of a fleet: a daemon with another account, other servers or
    /// other times finds other entries.
    /// - Parameters:
    ///   - times: the settings of `[cache]` that are written into entries.
    ///   - servers: its present servers; none of an account.
    func octets(_ times: [String], _ servers: [Server]) -> [UInt8] {
        let texts = kind + [network, "\(isTrusted)"] + times + servers.map(\.description)
        return (texts.map { Array($0.utf8) } + [customer]).flatMap { part in
            (0..<4).map { UInt8(truncatingIfNeeded: part.count >> (8 * (3 - $0))) } + part
        }
    }

    private init(_ group: Settings.Group) {
        routing = Routing(group, thenTry: group.thenTry, on: group.thenTryOn)
        access = .messages(group.isEncrypted ? group.tls : nil)
        (services, reports) = ([], nil)
        kind = ["dns", group.name]
        (network, isTrusted) = (group.routeIp?.description ?? "", group.trustAD)
        (signed, customer) = ("", [])
    }

    /// - Parameter group: nil for `[httpdns]`.
    private init(_ account: Settings.Account, _ group: Settings.Group?) {
        let settings = account.settings
        var routing = Routing(
            group, thenTry: group?.thenTry ?? settings.thenTry, on: group?.thenTryOn ?? settings.thenTryOn)
        (routing.addressType, routing.isBypassed) = (settings.addressType, settings.isBypassed)
        self.routing = routing
        access = .account(
            settings.credential, routeIp: settings.routeIp, isEncrypted: settings.routeIpEncrypted,
            expirySeconds: settings.authExpirySeconds, account.tls)
        services = settings.isBypassed ? [] : [settings.dnsIp, settings.confIp]
        reports = settings.enableReport ? .some(settings.reportUrl) : .none
        kind = ["account", settings.credential.provider.rawValue, settings.credential.encryption.rawValue]
        (network, isTrusted) = (settings.routeIp?.description ?? "", settings.routeIpEncrypted)
        (signed, customer) = (" \(settings.signed.rawValue)", settings.credential.customer)
    }
}

extension GroupIdentity {
    /// Of each group, by its name.
    static func all(_ settings: Settings) -> [String: GroupIdentity] {
        var all: [String: GroupIdentity] = [:]
        for group in settings.messageGroups { all[group.name] = GroupIdentity(group) }
        for account in settings.accounts {
            all[account.name] = GroupIdentity(account, settings.upstreams.first { $0.name == account.name })
        }
        return all
    }
}

extension Settings.HTTPDNS.Credential {
    /// What distinguishes the account from others of its provider. It only goes into a keyed hash.
    fileprivate var customer: [UInt8] {
        switch self {
        case .https(let token): token.bytes
        case .aes(let id, _), .des(let id, _), .signed(_, let id, _, _): Array("\(id)".utf8)
        }
    }
}
