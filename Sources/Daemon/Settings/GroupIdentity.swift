import Base
import Configuration

/// The settings of a group, by their effects: a reload compares these, never keys. The validity of answers is defined
/// elsewhere: see ``Policy/basis(_:_:_:)``.
struct GroupIdentity: Sendable, Equatable {
    /// The access to the group's servers, and their verification. If it changes, connections end, and the state of the
    /// servers is forgotten.
    let access: Access
    /// Of an account: the servers of `dnsIp`, those of `confIp`, and whether a proxy excludes it.
    let services: [[Endpoint]]
    /// Of an account: the reports on abnormal lookups; nil if it makes none.
    let reports: Reports?

    /// The network that it is asked for, the trust in AD bits, and the bogus addresses; stable over restarts. If it
    /// changes, cached answers of the group are invalid.
    let trust: String

    private let kind: [String]
    private let customer: [UInt8]

    enum Access: Sendable, Equatable {
        /// With DNS messages; nil if none of the servers is encrypted.
        case messages(Settings.TLS?, Egress)
        case account(
            Credential, routeIp: IPAddress?, isEncrypted: Bool, expirySeconds: Int, timeout: Int?,
            traces: Bool, Settings.TLS, Egress)
    }

    /// Where reports go, and their way out of this machine.
    struct Reports: Sendable, Equatable {
        /// Nil if they go to the log.
        let url: Settings.Account.ReportURL?
        let egress: Egress
    }

    /// The conditions of its answers beside the question, for the store of a fleet: a daemon with another account,
    /// other servers or other times finds other entries.
    /// - Parameters:
    ///   - times: The settings of `[cache]` that are written into entries.
    ///   - servers: The present servers of the group; none for an account.
    func octets(_ times: [String], _ servers: [Server]) -> [UInt8] {
        let texts = kind + [trust] + times + servers.map(\.description)
        return (texts.map { Array($0.utf8) } + [customer]).flatMap { part in
            (0..<4).map { UInt8(truncatingIfNeeded: part.count >> (8 * (3 - $0))) } + part
        }
    }

    init(_ group: Settings.Group) {
        let network = group.routeIp?.description ?? "-"
        guard let account = group.account else {
            access = .messages(group.isEncrypted ? group.tls : nil, group.egress)
            (services, reports) = ([], nil)
            let trust = ["\(network) \(group.trustAD)"] + group.bogusAddresses.map(\.description)
            (kind, self.trust, customer) = (["dns", group.name], trust.joined(separator: " "), [])
            return
        }
        access = .account(
            account.credential, routeIp: group.routeIp, isEncrypted: account.routeIpEncrypted,
            expirySeconds: account.authExpirySeconds, timeout: group.serviceTimeout, traces: account.trace, group.tls,
            group.egress)
        services = account.isBypassed ? [] : [account.dnsIp, account.confIp]
        reports = account.enableReport ? Reports(url: account.reportUrl, egress: group.egress) : nil
        kind = ["account", account.credential.provider.rawValue, account.credential.encryption.rawValue]
        (trust, customer) = ("\(network) \(account.routeIpEncrypted)", account.credential.customer)
    }
}

extension GroupIdentity {
    /// The identity of each group, by its name.
    static func all(_ settings: Settings) -> [String: GroupIdentity] {
        Dictionary(uniqueKeysWithValues: settings.groups.map { ($0.name, GroupIdentity($0)) })
    }
}

extension Credential {
    /// The distinction of the account from others of its provider. It only goes into a keyed hash.
    fileprivate var customer: [UInt8] {
        if case .https(let token) = self { token.bytes } else { Array("\(id ?? 0)".utf8) }
    }
}
