public import Base

/// The names of an account's keys in its section, so that a refusal can name the key that is likely wrong.
public struct AccountKeys: Sendable {
    private let section: String
    private let names: String
    private let credential: Credential
    private let fromFiles: [String]

    /// - Parameters:
    ///   - section: The section of the account's keys, such as `httpdns` or `upstreams.shop`.
    ///   - names: The key that assigns names to the account.
    ///   - credential: The account's credential. Its secrets are compared with a service's texts, so that no secret is
    ///     repeated.
    ///   - fromFiles: The secrets in files: `dnsKey` if `dnsKeyFile` was given.
    public init(_ section: String, names: String, _ credential: Credential, fromFiles: [String] = []) {
        (self.section, self.names, self.credential, self.fromFiles) = (section, names, credential, fromFiles)
    }

    /// A key of the account.
    enum Key: String {
        case provider, dnsIp, dnsId, dnsKey, aesKey, token, encryptType, authExpirySeconds, batch, queriesPerSecond
        /// The key that assigns names to the account.
        case names
    }

    /// `is httpdns.token right?`, or `are httpdns.dnsId and httpdns.dnsKey right?`
    func areRight(_ keys: [Key]) -> String {
        "\(keys.count == 1 ? "is" : "are") \(keys.map { self[$0] }.joined(separator: " and ")) right?"
    }

    /// A key with its section: `upstreams.shop.dnsKey`, or `upstreams.shop.dnsKeyFile` if a file was given.
    subscript(key: Key) -> String {
        key == .names ? names : "\(section).\(key.rawValue)\(fromFiles.contains(key.rawValue) ? "File" : "")"
    }

    /// The keys that prove the account's identity.
    var proof: [Key] {
        switch credential {
        case .https: [.token]
        case .aes, .des: [.dnsId, .dnsKey]
        case .signed(_, _, _, let aesKey): [.dnsId, .dnsKey] + (aesKey == nil ? [] : [.aesKey])
        }
    }

    /// The keys that encrypt names and answers; empty if TLS protects names and answers.
    var encryption: [Key] {
        switch credential {
        case .https, .signed(_, _, _, nil): []
        case .aes, .des: [.dnsKey]
        case .signed: [.aesKey]
        }
    }

    /// Whether a text contains none of the account's secrets, in either case of hexadecimal digits.
    func mayShow(_ text: String) -> Bool {
        let secrets: [[UInt8]]
        switch credential {
        case .https(let token): secrets = [token.bytes]
        case .aes(_, let key), .des(_, let key): secrets = [key.bytes]
        case .signed(_, _, let secret, let aesKey):
            let digits = aesKey?.bytes ?? []
            secrets = [secret.bytes, digits, Hexadecimal.decode(digits.span) ?? []]
        }
        let octets = text.utf8.map(lowercased)
        return secrets.allSatisfy { $0.isEmpty || !octets.contains($0.map(lowercased)) }
    }
}
