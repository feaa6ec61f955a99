package import Base
package import Cryptography

/// The security of connections to one server. Plain text must be chosen explicitly, never by a missing setting.
package enum Security {
    /// Plain text.
    case plain
    /// TLS: the target must be found at the address, by the rules of the context.
    case tls(TLSClientContext, TLSTarget)

    package var isSecure: Bool { if case .tls = self { true } else { false } }

    /// A new session to an address of the server; nil for plain text.
    /// - Parameter now: Seconds since 1970.
    package func session(to address: IPAddress, at now: UInt64) throws(LinkEnd) -> TLSSession? {
        guard case .tls(let context, let target) = self else { return nil }
        do throws(TLSError) {
            return try context.session(to: address, target, at: now)
        } catch {
            throw .tls(error)
        }
    }

    /// After a handshake that ended because the server has none of the protocols that ALPN offered, no protocol is
    /// offered any more, unless one is required.
    /// - Returns: Whether this is a change, so that another handshake may do better.
    package mutating func withdrawProtocols() -> Bool {
        guard case .tls(let context, var target) = self, !target.requiresProtocol, !target.protocols.isEmpty else {
            return false
        }
        target.protocols = []
        self = .tls(context, target)
        return true
    }
}
