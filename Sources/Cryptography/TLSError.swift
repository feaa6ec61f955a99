internal import COpenSSL

/// The reason for which a TLS session or its context failed, in words for an operator. Text from a peer's certificate
/// is cut to a bounded length and to printable ASCII, so that the words may go into a log.
public enum TLSError: Error, Equatable, Sendable, CustomStringConvertible {
    // The peer's certificate (RFC 5280 §6, RFC 6125 §6).

    /// None of the certificate's names is `wanted`; `has` lists its names, at most eight.
    case certificateName(wanted: String, has: [String])
    /// A certificate of the chain has expired; `at` is UTC. `depth` 0 is the server's own certificate.
    case certificateExpired(at: String, depth: Int)
    /// A certificate of the chain becomes valid only at `at` (UTC).
    case certificateNotYetValid(at: String, depth: Int)
    /// The chain does not end in a trusted certificate. `issuer` signed the last certificate that was sent.
    case unknownAuthority(issuer: String, depth: Int)
    /// The server's certificate is signed by itself and not trusted.
    case selfSigned
    /// This machine is short of descriptors or memory to read the system's authorities.
    case storeUnread
    /// A key or signature of the chain is too weak for OpenSSL's security level.
    case certificateTooWeak
    /// The certificate is not for use as a server's certificate.
    case certificatePurpose
    /// A signature in the chain does not match.
    case certificateSignature
    /// The verified chain has none of the pinned keys; `has` lists its keys as "sha256/BASE64", at most eight, the
    /// server's first.
    case pinMismatch(has: [String])
    /// The verified chain has none of the certificates whose hashes the server's stamp lists.
    case certificateHash
    /// OpenSSL rejected the certificate with any other X509_V_ERR code.
    case certificateRejected(code: Int)

    // The handshake and the records.

    /// The two sides share no TLS version; this side accepts 1.2 or newer.
    case noSharedVersion
    /// The two sides share no cipher suite.
    case noSharedCipher
    /// The client offers none of the protocols that this side serves (ALPN).
    case noSharedProtocol
    /// The peer's bytes are no TLS records.
    case notTLS
    /// The peer ended the session with this alert (RFC 8446 §6).
    case alert(UInt8)
    /// The server asked for a client certificate, got none and ended the session. Inferred from its request and the
    /// alert; a server may also continue and refuse the request in HTTP.
    case clientCertificateWanted(alert: UInt8)
    /// The server asked for a client certificate, got one and ended the session.
    case clientCertificateRefused(alert: UInt8)
    /// More bytes waited in one direction than ``TLSSession`` allows.
    case backlog
    /// OpenSSL refused for a reason of its own. The code is packed; 0 if OpenSSL gave none.
    case library(code: UInt)

    // Errors in the inputs of a context.

    /// The text is neither an address nor a name for a certificate.
    case serverName(String)
    /// The anchors are neither PEM certificates nor one DER certificate.
    case anchorsUnreadable
    /// The policy does not check the name, but lacks anchors that are the only trusted certificates.
    case namelessWithoutAnchors
    /// A pin has another number of bytes than a SHA-256 digest.
    case pinLength(Int)
    /// The client's certificate is not a PKCS #12 file, or is a PKCS #12 file without a MAC.
    case clientCertificateUnreadable
    /// The given password, or none, does not open the PKCS #12 file.
    case clientCertificatePassword(given: Bool)
    /// The PKCS #12 file is encrypted in a way that OpenSSL 3 supports only in its legacy provider.
    case clientCertificateEncryption
    /// The PKCS #12 file lacks a private key, or its certificate.
    case clientCertificateIncomplete
    /// The client certificate's key or signature is too weak for OpenSSL's security level.
    case clientCertificateTooWeak
    case certificateUnreadable
    case keyUnreadable
    /// The private key does not belong to the certificate.
    case keyMismatch

    /// Whether the peer's certificate was refused. If not, the two sides did not agree, or an input of TLS is wrong.
    public var refusesCertificate: Bool {
        switch self {
        case .certificateName, .certificateExpired, .certificateNotYetValid, .unknownAuthority, .selfSigned,
            .certificateTooWeak, .certificatePurpose, .certificateSignature, .pinMismatch, .certificateHash,
            .certificateRejected:
            true
        default: false
        }
    }

    /// Whether another set of trusted authorities might accept the certificate.
    var isOfAuthority: Bool {
        switch self {
        case .unknownAuthority, .selfSigned: true
        default: false
        }
    }

    public var description: String {
        switch self {
        case .certificateName(let wanted, let has) where has.isEmpty:
            "certificate is for another name (wanted \(wanted), it has no names)"
        case .certificateName(let wanted, let has):
            "certificate is for another name (wanted \(wanted), it has \(has.joined(separator: ", ")))"
        case .certificateExpired(let at, let depth): "\(Self.certificate(depth)) expired at \(at) (is the clock right?)"
        case .certificateNotYetValid(let at, let depth):
            "\(Self.certificate(depth)) is not yet valid, only from \(at) on (is the clock right?)"
        case .unknownAuthority(let issuer, 0):
            "certificate is signed by an unknown authority (\(issuer)), or the server does not send its intermediate "
                + "certificate"
        case .unknownAuthority(let issuer, _): "certificate is signed by an unknown authority (\(issuer))"
        case .storeUnread:
            "this machine is short of descriptors or memory to read the certificates that the system trusts"
        case .selfSigned: "certificate is self-signed and not one of the trusted ones"
        case .certificateTooWeak: "certificate has a key or signature that is too weak"
        case .certificatePurpose: "certificate is not meant for a server"
        case .certificateSignature: "certificate has a wrong signature"
        case .pinMismatch(let has):
            "certificate chain has none of the pinned keys; from the server's on it has \(has.joined(separator: ", "))"
        case .certificateHash: "certificate chain has none of the certificates that the server's stamp names"
        case .certificateRejected(let code):
            // Sound: the function returns a static string for every code.
            "certificate was rejected (\(unsafe String(cString: X509_verify_cert_error_string(code))))"
        case .noSharedVersion: "the peer has no TLS version from 1.2 on"
        case .noSharedCipher: "the peer has no cipher suite in common with this side"
        case .noSharedProtocol: "the peer speaks none of the protocols that are served here"
        case .notTLS: "the peer does not speak TLS"
        case .alert(let code): "the peer ended the session with \(Self.alert(code))"
        case .clientCertificateWanted(let code):
            "the server wants a client certificate and none is configured (\(Self.alert(code)))"
        case .clientCertificateRefused(let code): "the server refuses the client certificate: \(Self.alert(code))"
        case .backlog: "more data is waiting than a session keeps"
        case .library(let code): "TLS failed: \(errorText(code))"
        case .serverName(let name): "\(printable(name.utf8)) cannot be the name in a certificate"
        case .anchorsUnreadable: "the trusted certificates are neither PEM nor DER"
        case .namelessWithoutAnchors:
            "the certificate's name can only be left unchecked with trusted certificates of one's own, and those alone"
        case .pinLength(let count): "a pin has \(count) bytes, a SHA-256 digest has 32"
        case .clientCertificateUnreadable:
            "the client certificate is not a PKCS#12 file with a MAC (openssl pkcs12 -export makes one of PEM)"
        case .clientCertificatePassword(given: true): "the password of the client certificate is wrong"
        case .clientCertificatePassword(given: false): "the client certificate needs a password"
        case .clientCertificateEncryption:
            "the client certificate is encrypted in a way OpenSSL 3 no longer opens; to convert it: openssl pkcs12 -legacy "
                + "-in OLD.p12 -out TEMPORARY.pem && openssl pkcs12 -export -in TEMPORARY.pem -out NEW.p12"
        case .clientCertificateIncomplete:
            "the client certificate's file lacks the private key, or the certificate that belongs to it"
        case .clientCertificateTooWeak: "the client certificate has a key or signature that is too weak"
        case .certificateUnreadable: "the certificate is not PEM"
        case .keyUnreadable: "the private key is not PEM, or is encrypted"
        case .keyMismatch: "the private key does not belong to the certificate"
        }
    }

    /// The alert of a peer that has none of the protocols offered by ALPN (RFC 7301 §3.2).
    public static let noApplicationProtocol: TLSError = .alert(120)

    private static func certificate(_ depth: Int) -> String {
        depth == 0 ? "certificate" : "a certificate of the authority"
    }

    private static func alert(_ code: UInt8) -> String {
        "alert \(code)\(alertNames[code].map { " (\($0))" } ?? "")"
    }

    /// Whether a server may mean the client's certificate, or its absence, by this alert: from "bad certificate" to
    /// "unknown authority", "access denied", "decrypt error" (its signature) and "certificate required", or before TLS
    /// 1.3 "handshake failure" (RFC 5246 §7.4.6).
    static func isAboutCertificate(alert code: UInt8) -> Bool {
        switch code {
        case 40, 42...46, 48, 49, 51, 116: true
        default: false
        }
    }

    /// The alerts of RFC 8446 §6 and RFC 5246 §7.2 that end a session for a specific reason.
    private static let alertNames: [UInt8: String] = [
        10: "unexpected message", 20: "bad record MAC", 40: "handshake failure", 42: "bad certificate",
        43: "unsupported certificate", 44: "certificate revoked", 45: "certificate expired",
        46: "certificate unknown", 47: "illegal parameter", 48: "unknown authority", 49: "access denied",
        50: "decode error", 51: "decrypt error", 70: "protocol version", 71: "insufficient security",
        80: "internal error", 86: "inappropriate fallback", 90: "user cancelled", 109: "missing extension",
        110: "unsupported extension", 112: "unrecognized name", 116: "certificate required",
        120: "no application protocol",
    ]

    /// The error for a packed code from OpenSSL's queue.
    init(queued code: UInt) {
        guard ERR_GET_LIB(code) == ERR_LIB_SSL else {
            self = .library(code: code)
            return
        }
        switch ERR_GET_REASON(code) {
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_WRONG_SSL_VERSION, SSL_R_NO_PROTOCOLS_AVAILABLE, SSL_R_VERSION_TOO_LOW,
            SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
            self = .noSharedVersion
        case SSL_R_NO_SHARED_CIPHER: self = .noSharedCipher
        case SSL_R_NO_APPLICATION_PROTOCOL: self = .noSharedProtocol
        // The first code is about the version in a record's header, not about a version to negotiate.
        case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST: self = .notTLS
        case let reason where SSL_AD_REASON_OFFSET..<SSL_AD_REASON_OFFSET + 256 ~= reason:
            self = .alert(UInt8(reason - SSL_AD_REASON_OFFSET))
        default: self = .library(code: code)
        }
    }
}
