/// An account's credential for its service, which also decides how requests are protected.
public enum Credential: Sendable, Equatable {
    /// Tencent over TLS, with a token that needs no escapes in a URL (``isUnreserved(_:)``). By the documentation, the
    /// token is a decimal number.
    case https(token: Secret)
    /// Tencent over HTTP, with names and answers encrypted by AES-128-CBC. The key has 16 bytes.
    case aes(id: UInt32, key: Secret)
    /// Tencent over HTTP, with names and answers encrypted by DES-ECB. The key has 8 bytes.
    case des(id: UInt32, key: Secret)
    /// Any other provider, whose requests are each signed with the secret.
    /// - Parameter aesKey: The hexadecimal digits of the 16 bytes that encrypt names and answers over HTTP; nil if TLS
    ///   protects them.
    case signed(Provider, id: UInt32, secret: Secret, aesKey: Secret?)

    public var provider: Provider {
        if case .signed(let provider, _, _, _) = self { provider } else { .tencent }
    }

    public var encryption: Provider.Encryption {
        switch self {
        case .https, .signed(_, _, _, nil): .https
        case .aes, .signed: .aes
        case .des: .des
        }
    }

    /// Whether TLS authenticates the service; aes and des only encrypt questions and answers.
    public var isHTTPS: Bool { encryption == .https }

    /// The account's `dnsId`; nil if the token alone names the account.
    public var id: UInt32? {
        switch self {
        case .https: nil
        case .aes(let id, _), .des(let id, _), .signed(_, let id, _, _): id
        }
    }
}
