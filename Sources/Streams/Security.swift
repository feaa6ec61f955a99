package import Base
package import Cryptography

/// The security of connections to one server. Plain text must be chosen explicitly, never by a missing setting.
package enum Security {
    /// Plain text.
    case plain
    /// TLS: the target must be found at the endpoint, by the rules of the context.
    case tls(TLSClientContext, TLSTarget)

    package var isSecure: Bool { if case .tls = self { true } else { false } }

    /// A new session to an endpoint of the server; nil for plain text.
    /// - Parameter now: Seconds since 1970.
    package func session(to endpoint: Endpoint, at now: UInt64) throws(LinkEnd) -> TLSSession? {
        guard case .tls(let context, let target) = self else { return nil }
        do throws(TLSError) {
            return try context.session(to: endpoint, target, at: now)
        } catch {
            throw .tls(error)
        }
    }

    /// Whether ALPN offers protocols of which none is required: if the server has none of them, another handshake
    /// without them may do better.
    package var offersOptionalProtocols: Bool {
        guard case .tls(_, let target) = self else { return false }
        return !target.requiresProtocol && !target.protocols.isEmpty
    }

    /// The same without protocols, unless one is required.
    package var withoutOptionalProtocols: Security {
        guard offersOptionalProtocols, case .tls(let context, var target) = self else { return self }
        target.protocols = []
        return .tls(context, target)
    }
}
