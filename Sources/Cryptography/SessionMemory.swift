internal import Addresses
internal import COpenSSL

/// The last resumable TLS session of each address, so that a new connection there costs one round trip and no
/// signature less. All of them were verified under the policy, pins included, of the one context that keeps them.
///
/// TLS 1.3 tickets are meant to be used once, so that an onlooker cannot link connections (RFC 8446 §C.4). Here every
/// connection goes from one daemon to one fixed server, there is nothing to hide, and a ticket stays until the next one
/// comes: a lost connection then does not cost the resumption.
final class SessionMemory {
    /// Addresses remembered at once. A service has a handful; a session is a few kilobytes.
    static let limit = 16

    private final class Entry {
        let address: IPAddress
        let session: Owned

        init(_ address: IPAddress, _ session: consuming Owned) {
            self.address = address
            self.session = session
        }
    }

    /// At most one for each address, the newest last.
    private var entries: [Entry] = []

    var count: Int { entries.count }

    /// Takes over an SSL_SESSION.
    func remember(_ session: consuming Owned, for address: IPAddress) {
        forget(address)
        if entries.count == Self.limit { entries.removeFirst() }
        entries.append(Entry(address, session))
    }

    func forget(_ address: IPAddress) {
        entries.removeAll { $0.address == address }
    }

    /// Makes `session` (an SSL that has not begun) offer what is remembered for `address`.
    func offer(in session: OpaquePointer, for address: IPAddress) {
        guard let entry = entries.last(where: { $0.address == address }) else { return }
        // One that ended in an error is marked by OpenSSL, which then passes over it.
        unsafe _ = SSL_set_session(session, entry.session.pointer)
    }
}
