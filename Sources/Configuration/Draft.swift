import Base

/// The settings while they are read: the keys of `[httpdns]` are kept one by one here, until ``Loader`` makes the
/// account of them.
struct Draft: Sendable {
    /// All settings but `httpdns`, which is nil.
    var settings = Settings()
    var account = Account()

    struct Account: Sendable {
        var encryptType = EncryptType.https
        /// 0: not given.
        var dnsId: UInt32 = 0
        var dnsKey = SecretSource()
        var token = SecretSource()
        /// Empty: the public service. Port 0: the default of the encryption.
        var dnsIp: [Endpoint] = []
        var httpOnly = false
        /// The other keys of the section; the credential and `dnsIp` in it are not used.
        var rest = Settings.HTTPDNS(credential: .https(token: Secret([])))
    }

    enum EncryptType: String, Sendable, CaseIterable {
        case https, aes, des
    }

    /// A secret may be given directly or as a file that holds it, but not both; a property is empty if it was not
    /// given.
    struct SecretSource: Sendable {
        var value = Secret([])
        var file = ""

        var isGiven: Bool { !value.bytes.isEmpty || !file.isEmpty }
    }
}

extension Draft {
    /// The draft from which these settings would result.
    init(_ settings: Settings) {
        self.settings = settings
        guard let httpdns = settings.httpdns else { return }
        account.rest = httpdns
        account.dnsIp = httpdns.dnsIp
        account.httpOnly = httpdns.httpOnly
        switch httpdns.credential {
        case .https(let token):
            account.encryptType = .https
            account.token.value = token
        case .aes(let id, let key):
            account.encryptType = .aes
            account.dnsId = id
            account.dnsKey.value = key
        case .des(let id, let key):
            account.encryptType = .des
            account.dnsId = id
            account.dnsKey.value = key
        }
    }
}
