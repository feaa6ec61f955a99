/// What questions of clients come over, as metrics name it.
public enum ClientWay: String, Sendable, CaseIterable {
    case udp, tcp
    /// DNS over TLS.
    case tls
    /// DNS over HTTPS.
    case https

    /// Whether it is by TLS.
    public var isEncrypted: Bool { self == .tls || self == .https }
}
