import Cryptography
import Transport

/// The certificate of one server over TLS or HTTPS, and the keys of its tickets. Confined to the server's loop.
final class ServerCertificate {
    private var context: TLSServerContext
    /// When the keys of tickets change next, in the time of ``Clock``.
    private(set) var nextChange: UInt64

    /// How long tickets can be opened with a key, in nanoseconds: a day.
    static let keysLast: UInt64 = 86_400_000_000_000

    init(_ context: TLSServerContext) {
        (self.context, nextChange) = (context, Clock.now() + Self.keysLast)
    }

    /// Sets the certificate for clients that connect from now on; open sessions go on.
    func show(_ context: TLSServerContext) {
        (self.context, nextChange) = (context, Clock.now() + Self.keysLast)
    }

    /// A session for a connection of a client; nil if there is no memory for it.
    func session() -> TLSSession? { try? context.session() }

    /// Changes the keys of tickets if it is time to.
    func changeKeys(at now: UInt64) {
        guard now >= nextChange else { return }
        context.changeTicketKeys()
        nextChange = now + Self.keysLast
    }
}
