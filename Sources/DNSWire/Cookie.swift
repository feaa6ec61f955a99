public import Base

/// The COOKIE option of a reply (RFC 7873 §4.2) in the interoperable form of RFC 9018 §4: the client's eight octets and
/// the server's sixteen. Trivial; all fields are big-endian numbers, as on the wire.
public struct Cookie: Sendable, Equatable {
    /// The client's own octets.
    let client: UInt64
    /// The version, three reserved octets, and the creation time in seconds.
    let head: UInt64
    let hash: UInt64

    static let length = 24
    private static let version: UInt64 = 1

    package init(client: UInt64, head: UInt64, hash: UInt64) {
        (self.client, self.head, self.hash) = (client, head, hash)
    }

    /// A new cookie with the present time.
    package init(client: UInt64, at now: UInt32, address: IPAddress, secret: (UInt64, UInt64)) {
        self.client = client
        head = Cookie.version << 56 | UInt64(now)
        hash = Cookie.hash(client, head, address, secret)
    }

    /// The creation time of the cookie, in seconds, by the clock of the server that made the cookie.
    var made: UInt32 { UInt32(truncatingIfNeeded: head) }

    /// Whether the cookie was made with this secret, for this client at this address.
    package func isOurs(address: IPAddress, secret: (UInt64, UInt64)) -> Bool {
        head >> 56 == Cookie.version && hash == Cookie.hash(client, head, address, secret)
    }

    private static func hash(
        _ client: UInt64, _ head: UInt64, _ address: IPAddress, _ secret: (UInt64, UInt64)
    ) -> UInt64 {
        var hash = SipHash(key: secret)
        hash.add(client.byteSwapped)
        hash.add(head.byteSwapped)
        if address.isIPv4 {
            let octets = UInt32(truncatingIfNeeded: address.low).byteSwapped
            return hash.finish(UInt64(octets), count: 20).byteSwapped
        }
        hash.add(address.high.byteSwapped)
        hash.add(address.low.byteSwapped)
        return hash.finish(count: 32).byteSwapped
    }

    func write(into out: inout MutableSpan<UInt8>, at offset: Int) {
        out.write(client, at: offset)
        out.write(head, at: offset + 8)
        out.write(hash, at: offset + 16)
    }
}

/// Makes the cookies of clients and verifies them (RFC 7873 §5.2). Its only state is a constant seed, so each listener
/// has a copy and needs no lock.
public struct ServerCookies: Sendable {
    private let seed: (UInt64, UInt64)

    /// Seconds for which a secret makes new cookies: at most 26 hours by RFC 7873 §7.1.
    static let secretLifetime: UInt32 = 24 * 3600
    /// Seconds for which a cookie is valid, even a cookie of the former secret (RFC 9018 §4.3).
    static let goodFor: Int32 = 3600
    /// Seconds by which a cookie may be in the future (RFC 9018 §4.3): the clock may have been set back.
    static let skew: Int32 = 300
    /// Seconds for which a client gets the same cookie again (RFC 9018 §4.3).
    static let lifetime: Int32 = 1800

    /// - Parameter seed: Secret and random for this process. Each day's secret is derived from the seed, so an attacker
    ///   who finds a day's secret by trial has neither the next secret nor the seed.
    public init(seed: (UInt64, UInt64)) { self.seed = seed }

    /// The validity of a client's cookie. No value is a reason to refuse an ordinary question, which is answered with a
    /// new cookie (RFC 7873 §5.2.3 and §5.2.4 leave the choice to the server).
    public enum Standing: Sendable, Equatable {
        /// The cookie has no server part yet.
        case new
        case good
        /// The cookie is too old, forged, or from before a restart.
        case bad
    }

    /// The cookie for the reply to a client that sent a cookie; nil: the client sent none.
    ///
    /// - Parameters:
    ///   - message: The message that `edns` was read from.
    ///   - now: Seconds since 1970.
    public func cookie(
        for edns: EDNS, in message: Span<UInt8>, from address: IPAddress, at now: UInt32
    ) -> (cookie: Cookie, standing: Standing)? {
        guard edns.cookieLength >= 8 else { return nil }
        let offset = Int(edns.cookieOffset)
        let client = message.integer64(at: offset)
        var standing = Standing.new
        if edns.cookieLength > 8 {
            standing = .bad
            if Int(edns.cookieLength) == Cookie.length {
                let sent = Cookie(
                    client: client, head: message.integer64(at: offset + 8),
                    hash: message.integer64(at: offset + 16))
                // Serial arithmetic, as the time has 32 bits (RFC 9018 §4.3).
                let age = Int32(bitPattern: now &- sent.made)
                if age >= -Self.skew, age <= Self.goodFor,
                    sent.isOurs(address: address, secret: secret(at: sent.made))
                {
                    if age <= Self.lifetime { return (sent, .good) }
                    standing = .good
                }
            }
        }
        return (Cookie(client: client, at: now, address: address, secret: secret(at: now)), standing)
    }

    /// The secret of the day on which a cookie was made.
    private func secret(at seconds: UInt32) -> (UInt64, UInt64) {
        let day = UInt64(seconds / Self.secretLifetime)
        return (derived(day << 1), derived(day << 1 | 1))
    }

    private func derived(_ word: UInt64) -> UInt64 {
        var hash = SipHash(key: seed)
        hash.add(word)
        return hash.finish(count: 8)
    }
}
