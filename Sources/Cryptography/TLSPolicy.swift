public import Base

/// The verification of a server, and the client certificate for it. Its description has no secrets.
public struct TLSPolicy: Sendable, CustomStringConvertible, CustomReflectable {
    /// The name that the certificate must have, also sent as SNI. An address as text is searched among the
    /// certificate's addresses and not sent. If nil or empty, the certificate must have the dialled address.
    public var serverName: String?
    /// An address that may be in the certificate instead of a `serverName` that is a name; nil for no such address.
    public var serverAddress: IPAddress?
    /// Trusted certificates, several in PEM or one in DER, of authorities or of the server. If nil, the system's
    /// certificates are trusted (OpenSSL's default paths, SSL_CERT_FILE and SSL_CERT_DIR).
    public var anchors: [UInt8]?
    /// If there are anchors, whether only the anchors are trusted, or the system's authorities too.
    public var anchorsOnly: Bool
    /// SHA-256 digests of SubjectPublicKeyInfos (RFC 7469 §2.4), 32 bytes each. The verified chain, from the server's
    /// certificate to the trusted one, must have one of them. If empty, any chain that verifies is accepted.
    public var pins: [[UInt8]]
    /// Whether the name is verified, too, and not only the chain. False requires anchors that are the only trusted
    /// certificates; `serverName` is then only sent.
    public var validatesName: Bool
    /// The client certificate for servers that ask for a certificate: a PKCS #12 file (RFC 7292) and its password,
    /// which may be empty. If nil, there is no client certificate.
    public var clientCertificate: (pkcs12: [UInt8], password: [UInt8])?

    /// Whether certificates are refused by their dates while the clock shows a time before this version's release. If
    /// false, dates are ignored then. A machine without a battery-backed clock looks its time servers up by name, and
    /// without an answer would never get the time.
    public var refusesUnsetClock: Bool

    public init(
        serverName: String? = nil, serverAddress: IPAddress? = nil, anchors: [UInt8]? = nil, anchorsOnly: Bool = true,
        pins: [[UInt8]] = [],
        validatesName: Bool = true, clientCertificate: (pkcs12: [UInt8], password: [UInt8])? = nil,
        refusesUnsetClock: Bool = false
    ) {
        (self.serverName, self.serverAddress, self.anchors) = (serverName, serverAddress, anchors)
        (self.anchorsOnly, self.pins, self.validatesName) = (anchorsOnly, pins, validatesName)
        (self.clientCertificate, self.refusesUnsetClock) = (clientCertificate, refusesUnsetClock)
    }

    public var description: String { "TLS policy" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
