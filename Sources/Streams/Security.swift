package import Cryptography

/// How connections are secured. Nothing that is missing stands for "in the clear".
package enum Security {
    /// In the clear.
    case plain
    case tls(TLSClientContext)

    package var isSecure: Bool {
        switch self {
        case .plain: false
        case .tls: true
        }
    }

    /// A new session, which `make` takes from the context; nil in the clear.
    package func session(
        _ make: (TLSClientContext) throws(TLSError) -> TLSSession
    ) throws(TLSError) -> TLSSession? {
        switch self {
        case .plain: nil
        case .tls(let context): try make(context)
        }
    }
}
