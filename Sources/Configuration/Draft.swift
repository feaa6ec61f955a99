import Base

/// The settings while they are read: the keys of `[httpdns]` are kept one by one here, until ``Loader`` makes the
/// account of them.
struct Draft: Sendable {
    /// All settings but `httpdns`, which is nil.
    var settings = Settings()
    var account = Account()

    /// The keys of an account as they were given, of `[httpdns]` or of a group.
    struct Account: Sendable, Equatable {
        var provider = Provider.tencent
        var encryptType = Provider.Encryption.https
        /// 0: not given.
        var dnsId: UInt32 = 0
        var secrets = Secrets()
        /// Empty: the public service. Port 0: the default of the encryption.
        var dnsIp: [Endpoint] = []
        var httpOnly = false
        /// The other keys; the credential and `dnsIp` in it are not used.
        var rest = Settings.HTTPDNS(credential: .https(token: Secret([])))
    }

    /// The secrets of an account.
    struct Secrets: Sendable, Equatable {
        var dnsKey = SecretSource()
        var aesKey = SecretSource()
        var token = SecretSource()

        var all: [(name: String, source: SecretSource)] { [("dnsKey", dnsKey), ("aesKey", aesKey), ("token", token)] }

        /// Whether one stands in the configuration itself.
        var isAnyInText: Bool { all.contains { !$0.source.value.bytes.isEmpty } }

        /// Takes from others what is not given here.
        mutating func complete(from others: Secrets) {
            if !dnsKey.isGiven { dnsKey = others.dnsKey }
            if !aesKey.isGiven { aesKey = others.aesKey }
            if !token.isGiven { token = others.token }
        }
    }

    /// A secret may be given directly or as a file that holds it, but not both; a property is empty if it was not
    /// given.
    struct SecretSource: Sendable, Equatable {
        var value = Secret([])
        var file = ""

        var isGiven: Bool { !value.bytes.isEmpty || !file.isEmpty }
    }
}

extension Draft {
    /// The draft from which these settings would result.
    init(_ settings: Settings) {
        self.settings = settings
        if let httpdns = settings.httpdns { account = Account(httpdns) }
    }
}

extension Draft.Account {
    /// What would have to be given for this account.
    init(_ account: Settings.HTTPDNS) {
        rest = account
        dnsIp = account.dnsIp
        httpOnly = account.httpOnly
        provider = account.credential.provider
        encryptType = account.credential.encryption
        switch account.credential {
        case .https(let token): secrets.token.value = token
        case .aes(let id, let key), .des(let id, let key): (dnsId, secrets.dnsKey.value) = (id, key)
        case .signed(_, let id, let secret, let aesKey):
            (dnsId, secrets.dnsKey.value) = (id, secret)
            if let aesKey { secrets.aesKey.value = aesKey }
        }
    }
}
