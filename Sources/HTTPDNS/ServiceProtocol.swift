/// The constants of the service's protocol, and what was chosen where its documentation is silent.
///
/// Chosen, since neither the documentation nor the service's own SDKs settle it:
/// - Names go out in lower case, without a final dot, joined with an unescaped `,`; hexadecimal in lower case.
/// - `alg` is always sent, though the documentation's text calls it optional; `id` is not sent in https mode.
/// - Whether `ip=` is to be encrypted is the account's setting: documentation and SDKs disagree.
/// - An empty body, and an encrypted empty text, is "no record" for every name asked. The iOS SDK takes any AES body of
///   at most an initialization vector's length for that; here only exactly such a vector alone is, and anything else
///   that cannot be decrypted is a failure, so that garbage is never remembered as the absence of a name.
/// - "No record" of a family is `0`, with a TTL or without; the name alone, as one sample of the documentation prints
///   it (`www.example.com|203.0.113.7`), is "no record" of every family asked.
/// - `|CLIENT`, an address, may end any line, or none; which it is does not matter.
/// - Each line bears the name, and each list its TTL: with `query=1&ttl=1` the service writes both. The one sample of a
///   list without a TTL beside a `0` (for a request without `ttl=1`) is taken in https mode alone.
/// - A `type=addrs` answer of one list instead of two holds the addresses of both families.
/// - A text is read whole or not at all: neither a line nor an address in it is skipped, and a name may come twice only
///   if the same is said of it. White space at both ends, and a carriage return before a line feed, mean nothing.
/// - A list with an address that no machine can have is valid, but counts as empty.
/// - The bodies of error statuses are not read.
/// - Of the service's configuration (`/conf`) only `ip` and `ttl` count: `log` is about reports to the vendor, which
///   are never sent, and `domain` about a name of the service, which is never asked for.
public enum ServiceProtocol {
    /// The most addresses taken from the service's own list. Its documentation shows two.
    public static let addressesPerService = 16
    /// The most addresses taken of one family of one name. The service names no limit; more would not fit into a UDP
    /// reply.
    public static let addressesPerFamily = 32
    /// The TTL of an address list without one, in seconds (the service advises never to keep less than a minute).
    public static let defaultTTL: UInt32 = 60
    /// The largest TTL that DNS can carry, in seconds (RFC 2181 §8).
    public static let maximumTTL = UInt32(Int32.max)
    /// The longest TTL taken from an answer in aes and des mode, in seconds, since an attacker on the path may have
    /// changed the answer. The service advises to keep answers for 120 to 600 seconds.
    public static let maximumEncryptedTTL: UInt32 = 600

    /// Echo the name, give the TTL, give the client address: always requested, so that an answer can be checked and
    /// cached.
    static let flags = "&ttl=1&query=1&clientip=1"
    /// The length of the initialization vector of AES-CBC, which precedes each ciphertext.
    static let initializationVectorLength = 16
}
