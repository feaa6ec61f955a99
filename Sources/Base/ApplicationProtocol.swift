/// The names of protocols in ALPN (RFC 7301 §6) and SVCB records (RFC 9460 §7.1).
public enum ApplicationProtocol {
    public static let dnsOverTLS = "dot"
    public static let http2 = "h2"
    public static let http1 = "http/1.1"
}
