public import Base

/// An account's credential for its service. Its description is only its kind.
public enum ServiceCredential: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    /// Tencent over TLS, with a token that needs no escapes in a URL (``isUnreserved(_:)``); by the documentation it is
    /// a decimal number.
    case https(token: [UInt8])
    /// Tencent over HTTP, names and answers encrypted with AES-128-CBC; the key has 16 bytes.
    case aes(id: UInt32, key: [UInt8])
    /// Tencent over HTTP, names and answers encrypted with DES-ECB; the key has 8 bytes.
    case des(id: UInt32, key: [UInt8])
    /// Any other provider: each request is signed with the secret.
    /// - Parameter aesKey: The 16 bytes that encrypt names and answers, over HTTP; nil: TLS protects them.
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
