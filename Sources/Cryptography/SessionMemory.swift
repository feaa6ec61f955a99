import Base
internal import COpenSSL

/// The last resumable TLS session of each endpoint and target. A resumed session saves a new connection a round trip and
/// a signature.
///
/// All sessions were verified under the policy, pins included, of the one context that stores them. A resumed session
/// is not verified again: an attacker who once had a certificate's key could continue such a session for as long as
/// tickets are renewed. So a session, and all that are resumed from it, may be used for a day at most and not past the
/// certificates' end.
///
/// TLS 1.3 tickets are meant to be used once, so that an observer cannot link connections (RFC 8446 §C.4). Here each
/// connection goes from one daemon to one fixed server and is linked anyway, so a ticket stays until the next one
/// comes: a lost connection then does not cost the resumption.
final class SessionMemory {
    /// The most targets: as many as a group may have servers. Each session has a few kilobytes.
    static let limit = 64

    /// How long a verification is valid, in seconds.
    static let longestTrust: UInt64 = 86_400

    /// The destination of a session, and the required peer.
    struct Key: Equatable {
        let endpoint: Endpoint
        let target: TLSTarget
    }

    private final class Entry {
        let key: Key
        let session: Owned
        let trust: Range<UInt64>

        init(_ key: Key, _ session: consuming Owned, _ trust: Range<UInt64>) {
            self.key = key
            self.session = session
            self.trust = trust
        }
    }

    /// At most one session for each target, the newest last.
    private var entries: [Entry] = []

    var count: Int { entries.count }

    /// Takes over an SSL_SESSION.
    /// - Parameter trust: The period in which the session may be resumed, in seconds since 1970.
    func remember(_ session: consuming Owned, for key: Key, trust: Range<UInt64>) {
        forget(key)
        if entries.count == Self.limit { entries.removeFirst() }
        entries.append(Entry(key, session, trust))
    }

    func forget(_ key: Key) { entries.removeAll { $0.key == key } }

    /// Makes `session` (an SSL that has not begun) offer the session stored for `key`, if that may be resumed now.
    /// - Parameter now: Seconds since 1970. A clock set back to before the verification ends the trust as well.
    /// - Returns: The period in which the offered session may be resumed; nil if no session is offered.
    func offer(in session: OpaquePointer, for key: Key, at now: UInt64) -> Range<UInt64>? {
        guard let entry = entries.last(where: { $0.key == key }), entry.trust.contains(now) else { return nil }
        // OpenSSL marks a session that ended in an error, and then does not offer it.
        unsafe _ = SSL_set_session(session, entry.session.pointer)
        return entry.trust
    }
}
