/// What our OPT record carries for one client, beside what comes with the answer; trivial.
///
/// It travels in the client's ``Question``, so that whoever writes the reply, from the cache or long after, needs to know
/// neither the client's address nor its transport.
public struct ReplyOptions: Sendable, Equatable {
    /// For a client that sent one.
    public let cookie: Cookie?
    /// How long an idle connection stays open, in units of 100 ms (edns-tcp-keepalive, RFC 7828): for a client that asked
    /// over TCP.
    public let keepAlive: UInt16?
    /// Octets in RDATA. Kept small: a question is copied on its way.
    private let octets: UInt8
    var length: Int { Int(octets) }

    public init(cookie: Cookie? = nil, keepAlive: UInt16? = nil) {
        self.cookie = cookie
        self.keepAlive = keepAlive
        octets = UInt8(
            (cookie == nil ? 0 : Self.headLength + Cookie.length) + (keepAlive == nil ? 0 : Self.headLength + 2))
    }

    /// Code and length before each option's data (RFC 6891 §6.1.2).
    private static let headLength = 4

    /// The most octets they take.
    static let maximumLength = headLength + Cookie.length + headLength + 2

    /// Returns the offset behind them.
    func write(into out: inout MutableSpan<UInt8>, at start: Int) -> Int {
        var offset = start
        if let cookie {
            out.write(EDNS.cookieOption, at: offset)
            out.write(UInt16(Cookie.length), at: offset + 2)
            cookie.write(into: &out, at: offset + Self.headLength)
            offset += Self.headLength + Cookie.length
        }
        if let keepAlive {
            out.write(EDNS.keepAliveOption, at: offset)
            out.write(UInt16(2), at: offset + 2)
            out.write(keepAlive, at: offset + Self.headLength)
            offset += Self.headLength + 2
        }
        return offset
    }
}
