/// The constants of the service's protocol, and decisions where its documentation is silent.
///
/// Neither the documentation nor the service's own SDKs settle these questions:
/// - Names are sent in lower case, without a final dot, joined with an unescaped `,`; hexadecimal in lower case.
/// - `alg` is always sent, though the documentation's text calls it optional; `id` is not sent in https mode.
/// - Whether `ip=` is to be encrypted is the account's setting: documentation and SDKs disagree.
/// - An empty body, and an encrypted empty text, is "no record" for each name of the request. The iOS SDK accepts any
///   AES body up to an initialization vector's length as this; here only exactly such a vector is, and any other
///   undecryptable body is a failure, so that garbage is never cached as the absence of a name.
/// - "No record" of a family is `0`, with or without a TTL; the name alone, as in one sample of the documentation
///   (`www.example.com|203.0.113.7`), is "no record" of each family of the request.
/// - `|CLIENT`, an address, may end any line; its value is ignored.
/// - Each line has the name, and each list its TTL: with `query=1&ttl=1` the service writes both. The one sample of a
///   list without a TTL beside a `0` (for a request without `ttl=1`) is accepted only in https mode.
/// - A `type=addrs` answer of one list instead of two contains the addresses of both families.
/// - A text is read whole or not at all: neither a line nor an address in it is skipped, and a name may occur twice
///   only with the same result. White space at both ends, and a carriage return before a line feed, are ignored.
/// - A list with an address that no machine can have is valid, but counts as empty.
/// - The bodies of error statuses are not read.
/// - Of the service's configuration (`/conf`) only `ip` and `ttl` are used: `log` is about reports to the vendor, which
///   are never sent, and `domain` about a name of the service, which is never looked up.
public enum ServiceProtocol {
    /// The most addresses taken from the service's own list. The service's documentation shows two.
    public static let addressesPerService = 16
    /// The most addresses of one family of one name. The service documents no limit; more would not fit into a UDP
    /// reply.
    public static let addressesPerFamily = 32
    /// The TTL of an address list without a TTL, in seconds (the service advises a minute at least).
    public static let defaultTTL: UInt32 = 60
    /// The largest TTL that DNS can carry, in seconds (RFC 2181 §8).
    public static let maximumTTL = UInt32(Int32.max)
    /// The longest TTL taken from an answer in aes and des mode, in seconds, since an attacker on the path may have
    /// changed the answer. The service advises to cache answers for 120 to 600 seconds.
    public static let maximumEncryptedTTL: UInt32 = 600

    /// Echo the name, send the TTL and the client address: always requested, so that an answer can be checked and
    /// cached.
    static let flags = "&ttl=1&query=1&clientip=1"
}
