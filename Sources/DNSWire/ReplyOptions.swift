/// The options of the OPT record in a reply to one client, without the extended errors, which belong to the answer;
/// trivial.
///
/// The options are part of the client's ``Question``, so that the code that writes the reply, from the cache or seconds
/// later, needs to know neither the client's address nor its transport.
public struct ReplyOptions: Sendable, Equatable {
    /// The server cookie, for a client that sent a cookie.
    public let cookie: Cookie?
    /// How long an idle connection stays open, in units of 100 ms (edns-tcp-keepalive, RFC 7828). Only for a client
    /// that asked for this time over TCP.
    public let keepAlive: UInt16?
    /// The length of the options in one octet, since each copied question contains it.
    private let octets: UInt8
    var length: Int { Int(octets) }

    public init(cookie: Cookie? = nil, keepAlive: UInt16? = nil) {
        self.cookie = cookie
        self.keepAlive = keepAlive
        octets = UInt8(
            (cookie == nil ? 0 : EDNS.optionHead + Cookie.length) + (keepAlive == nil ? 0 : EDNS.optionHead + 2))
    }

    /// The most octets of all options together.
    static let maximumLength = EDNS.optionHead + Cookie.length + EDNS.optionHead + 2

    /// Writes the options at `start` and returns the offset after them.
    func write(into out: inout MutableSpan<UInt8>, at start: Int) -> Int {
        var offset = start
        if let cookie {
            out.write(EDNS.cookieOption, at: offset)
            out.write(UInt16(Cookie.length), at: offset + 2)
            cookie.write(into: &out, at: offset + EDNS.optionHead)
            offset += EDNS.optionHead + Cookie.length
        }
        if let keepAlive {
            out.write(EDNS.keepAliveOption, at: offset)
            out.write(UInt16(2), at: offset + 2)
            out.write(keepAlive, at: offset + EDNS.optionHead)
            offset += EDNS.optionHead + 2
        }
        return offset
    }
}
