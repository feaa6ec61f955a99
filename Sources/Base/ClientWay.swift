/// The transport of a client's question. The raw value is its name in metrics.
public enum ClientWay: String, Sendable, CaseIterable {
    case udp, tcp
    /// DNS over TLS.
    case tls
    /// DNS over HTTPS.
    case https

    /// Whether this transport uses TLS.
    public var isEncrypted: Bool { self == .tls || self == .https }
}
