public import Base

/// An account's credential for its service. The description has only the credential's kind.
public enum ServiceCredential: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    /// Tencent over TLS, with a token that needs no escapes in a URL (``isUnreserved(_:)``). By the documentation, the
    /// token is a decimal number.
    case https(token: [UInt8])
    /// Tencent over HTTP, with names and answers encrypted by AES-128-CBC. The key has 16 bytes.
    case aes(id: UInt32, key: [UInt8])
    /// Tencent over HTTP, with names and answers encrypted by DES-ECB. The key has 8 bytes.
    case des(id: UInt32, key: [UInt8])
    /// Any other provider, whose requests are each signed with the secret.
    /// - Parameter aesKey: The 16 bytes that encrypt names and answers over HTTP; nil if TLS protects them.
    case signed(Provider, id: UInt32, secret: [UInt8], aesKey: [UInt8]?)

    public var description: String {
        switch self {
        case .https: "https"
        case .aes: "aes"
        case .des: "des"
        case .signed(let provider, _, _, _): provider.rawValue
        }
    }

    public var customMirror: Mirror { Mirror(self, children: []) }
}
