import Base
import Configuration
import DNSWire
import Names

/// What the settings of a group decide, in the parts that matter for different things. Whoever wants to know what a reload, a
/// restart or another daemon of the fleet has changed compares these, never keys.
struct GroupIdentity: Sendable, Equatable {
    /// Its names, what it answers by itself, the groups asked after it and the reasons for that, and the address families that are asked for. By another
    /// one, questions go elsewhere.
    let routing: Routing
    /// How its servers are asked, and how they prove who they are. By another one, connections end, and what is known of the
    /// servers is forgotten.
    let access: Access
    /// Of an account: the servers of `dnsIp`, those of `confIp`, and whether a proxy has it left out.
    let services: [[Endpoint]]
    /// Of an account: where abnormal lookups are reported; the outer nil: nowhere.
    let reports: Settings.Account.ReportURL??

    private let kind: [String]
    private let network: String
    private let isTrusted: Bool
    private let signed: String
    private let customer: [UInt8]

    struct Routing: Sendable, Equatable {
        let domains, except: [DomainPattern]
        let answer: GroupAnswer?
        let thenTry: [String]
        let thenTryOn: Set<Settings.Group.Reason>
        /// Of an account.
        let addressType: Settings.Account.AddressType?
        let serviceBinding: Settings.Account.ServiceBinding?
        let isBypassed: Bool

        init(_ group: Settings.Group) {
            (domains, except, answer) = (group.domains, group.except, group.answer)
            (thenTry, thenTryOn) = (group.thenTry, group.thenTryOn)
            (addressType, isBypassed) = (group.account?.addressType, group.isBypassed)
            serviceBinding = group.account?.serviceBinding
        }
    }

    enum Access: Sendable, Equatable {
        /// With DNS messages; nil: none of the servers is encrypted.
        case messages(Settings.TLS?, Egress)
        case account(
            Settings.Account.Credential, routeIp: IPAddress?, isEncrypted: Bool, expirySeconds: Int, timeout: Int?,
            traces: Bool, Settings.TLS, Egress)
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

    init(_ group: Settings.Group) {
        routing = Routing(group)
        network = group.routeIp?.description ?? ""
        guard let account = group.account else {
            access = .messages(group.isEncrypted ? group.tls : nil, group.egress)
            (services, reports) = ([], nil)
            (kind, isTrusted) = (["dns", group.name], group.trustAD)
            (signed, customer) = ("", [])
            return
        }
        access = .account(
            account.credential, routeIp: group.routeIp, isEncrypted: account.routeIpEncrypted,
            expirySeconds: account.authExpirySeconds, timeout: group.serviceTimeout, traces: account.trace, group.tls,
            group.egress)
        services = account.isBypassed ? [] : [account.dnsIp, account.confIp]
        reports = account.enableReport ? .some(account.reportUrl) : .none
        kind = ["account", account.credential.provider.rawValue, account.credential.encryption.rawValue]
        isTrusted = account.routeIpEncrypted
        (signed, customer) = (" \(account.signed.rawValue)", account.credential.customer)
    }
}

extension GroupIdentity {
    /// Of each group, by its name.
    static func all(_ settings: Settings) -> [String: GroupIdentity] {
        Dictionary(uniqueKeysWithValues: settings.groups.map { ($0.name, GroupIdentity($0)) })
    }
}

extension Settings.Account.Credential {
    /// What distinguishes the account from others of its provider. It only goes into a keyed hash.
    fileprivate var customer: [UInt8] {
        switch self {
        case .https(let token): token.bytes
        case .aes(let id, _), .des(let id, _), .signed(_, let id, _, _): Array("\(id)".utf8)
        }
    }
}
