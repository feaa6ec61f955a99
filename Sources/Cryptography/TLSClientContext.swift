public import Base
internal import COpenSSL

/// Makes the client side of TLS connections (TLS 1.2 and 1.3) under one policy, and stores the sessions verified under
/// it. Confined to one queue together with its sessions.
///
/// An invalid policy fails here. OpenSSL's own context is made with the first session: that takes some 2 ms once in a
/// process, nearly all for the start of OpenSSL, and no cached answer should wait for it.
public final class TLSClientContext {
    private var made: Made?
    /// The policy's certificates; nil: the policy has none.
    private let anchors: [Certificate]?
    private let usesSystem: Bool
    /// The peer of the policy; nil: the policy has none, and each session's target or address is the peer.
    private let peer: ExpectedPeer?
    private let validatesName: Bool
    private let pins: RequiredDigests
    private let hasCertificate: Bool
    private let memory = SessionMemory()
    private let scratch = Scratch(TLSSession.pieceLength)
    private let refusesUnsetClock: Bool

    /// The SSL_CTX, with the file that the context's store may need.
    private final class Made {
        let context: Owned
        let systemFile: SystemFile?

        init(_ context: consuming Owned, usesSystem: Bool) {
            systemFile = unsafe usesSystem ? SystemFile(for: context.pointer) : nil
            self.context = context
        }
    }

    /// The number of targets whose last sessions are stored, at most ``SessionMemory/limit``.
    package var remembered: Int { memory.count }

    public init(_ policy: TLSPolicy) throws(TLSError) {
        // Without the name's check, a certificate of a public authority could belong to any host.
        guard policy.validatesName || policy.anchors != nil && policy.anchorsOnly else { throw .namelessWithoutAnchors }
        validatesName = policy.validatesName
        refusesUnsetClock = policy.refusesUnsetClock
        pins = try RequiredDigests(policy.pins)
        hasCertificate = policy.clientCertificate != nil
        if let name = policy.serverName, !name.isEmpty {
            peer = try ExpectedPeer(serverName: name, or: policy.serverAddress)
        } else {
            peer = nil
        }
        usesSystem = policy.anchors == nil || !policy.anchorsOnly
        if let anchors = policy.anchors {
            guard let certificates = Certificate.read(pemOrDER: anchors) else { throw .anchorsUnreadable }
            self.anchors = certificates
        } else {
            anchors = nil
        }
        if let (pkcs12, password) = policy.clientCertificate {
            let certificate = try ClientCertificate.read(pkcs12: pkcs12, password: password)
            // Only a context can check whether the certificate is strong enough.
            let made = try make()
            unsafe try certificate.use(in: made.context.pointer)
            self.made = made
        }
    }

    private func make() throws(TLSError) -> Made {
        let context = unsafe try Owned.tlsContext(TLS_client_method())
        unsafe TLSSession.installClientCallbacks(in: context.pointer)
        // The library's own store would find sessions by ID, not by target; SessionMemory does that.
        unsafe copenssl_SSL_CTX_set_session_cache_mode(
            context.pointer, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL))
        guard unsafe X509_VERIFY_PARAM_set_purpose(SSL_CTX_get0_param(context.pointer), X509_PURPOSE_SSL_SERVER) == 1
        else { throw .library(code: 0) }
        if let anchors {
            let store = unsafe SSL_CTX_get_cert_store(context.pointer)
            for certificate in anchors {
                guard unsafe X509_STORE_add_cert(store, certificate.pointer) == 1 else { throw .library(code: 0) }
            }
            // Each of the given certificates is trusted by itself, even an intermediate or the server's own.
            unsafe X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context.pointer), UInt(X509_V_FLAG_PARTIAL_CHAIN))
        }
        if usesSystem {
            guard unsafe SSL_CTX_set_default_verify_dir(context.pointer) == 1 else { throw .library(code: 0) }
        }
        return Made(context, usesSystem: usesSystem)
    }

    /// A session to an endpoint where `target` must be found. If possible, the session resumes the last session there.
    /// Its first flight is ready to be taken.
    /// - Parameter now: Seconds since 1970.
    public func session(
        to endpoint: Endpoint, _ target: TLSTarget = TLSTarget(), at now: UInt64
    ) throws(TLSError) -> TLSSession {
        let key = SessionMemory.Key(endpoint: endpoint, target: target)
        let expected: ExpectedPeer
        if let name = target.name {
            expected = try ExpectedPeer(serverName: name)
        } else {
            expected = peer ?? .address(endpoint.address)
        }
        let protocols = protocolList(target.protocols)
        let made = if let made { made } else { try make() }
        self.made = made
        guard let ssl = unsafe Owned(SSL_new(made.context.pointer), freedBy: SSL_free),
            unsafe expected.require(in: ssl.pointer, validating: validatesName),
            // Unlike its neighbours, this function returns 0 for success.
            unsafe protocols.isEmpty || SSL_set_alpn_protos(ssl.pointer, protocols, UInt32(protocols.count)) == 0
        else { throw .library(code: 0) }
        if !refusesUnsetClock, now < Version.made {
            unsafe X509_VERIFY_PARAM_set_flags(SSL_get0_param(ssl.pointer), UInt(X509_V_FLAG_NO_CHECK_TIME))
        }
        let trust = unsafe memory.offer(in: ssl.pointer, for: key, at: now)
        return try TLSSession(
            ssl,
            client: .init(
                peer: expected, key: key, began: now, memory: memory, pins: pins,
                hashes: try RequiredDigests(target.hashes), hasCertificate: hasCertificate,
                systemFile: made.systemFile),
            trust: trust, scratch: scratch)
    }
}

/// The required peer of a TLS connection, and the protocols offered to it.
public struct TLSTarget: Sendable, Equatable {
    /// The name that the certificate must have, as in ``TLSPolicy/serverName``; nil: the policy's name, or the address.
    public var name: String?
    /// SHA-256 digests of the signed parts of certificates, 32 octets each. The verified chain must have one of them
    /// (DNS stamps). If empty, any chain that verifies is accepted.
    public var hashes: [[UInt8]]
    /// The ALPN names of the offered protocols, 1 to 255 octets each, the preferred one first (RFC 7301). May be empty.
    public var protocols: [String]
    /// Whether the handshake fails, with ``TLSError/noApplicationProtocol``, if the server chooses no offered protocol.
    public var requiresProtocol: Bool

    public init(
        name: String? = nil, hashes: [[UInt8]] = [], protocols: [String] = [ApplicationProtocol.http1],
        requiresProtocol: Bool = false
    ) {
        (self.name, self.hashes, self.protocols, self.requiresProtocol) = (name, hashes, protocols, requiresProtocol)
    }
}

/// ALPN names in wire form: length and text of each (RFC 7301 §3.1).
func protocolList(_ names: [String]) -> [UInt8] {
    names.flatMap { [UInt8(clamping: $0.utf8.count)] + $0.utf8.prefix(255) }
}

/// The file with all authorities of the system's store (OpenSSL's default, or SSL_CERT_FILE).
///
/// Reading its 140 certificates takes some 10 ms and 800 KB. Most machines also have a directory with a file for each
/// authority, found by the hash of its name; so this file is read only if that directory lacks the needed authority.
@safe
final class SystemFile {
    // Sound: the context owns this object, and sessions, which use it, retain the context's SSL_CTX.
    private let context: OpaquePointer
    private var isRead = false
    /// Whether this machine was short of descriptors or memory at the last attempt to read the file.
    private(set) var wasShort = false

    init(for context: OpaquePointer) { unsafe self.context = context }

    /// Adds the file's authorities to the context's store, once. A file that cannot be read is tried again at the next
    /// call.
    /// - Returns: Whether the store has more authorities now.
    func read() -> Bool {
        if isRead { return false }
        let outcome = unsafe copenssl_SSL_CTX_load_default_verify_file(context)
        (isRead, wasShort) = (outcome == 1, outcome < 0)
        return isRead
    }
}

/// The cipher suites of TLS 1.2 with forward secrecy, so that a stolen private key does not reveal earlier sessions,
/// and with authenticated encryption (RFC 9325 §4.2). All suites of TLS 1.3 have both.
private let forwardSecret = "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:DHE+CHACHA20"

extension Owned {
    /// An SSL_CTX with the common settings of clients and servers.
    static func tlsContext(_ method: OpaquePointer?) throws(TLSError) -> Owned {
        try withClearErrors { () throws(TLSError) in
            guard let context = unsafe Owned(SSL_CTX_new(method), freedBy: SSL_CTX_free),
                unsafe copenssl_SSL_CTX_set_min_proto_version(context.pointer, TLS1_2_VERSION) == 1,
                unsafe SSL_CTX_set_cipher_list(context.pointer, forwardSecret) == 1
            else { throw .library(code: ERR_peek_error()) }
            // An idle connection then has no record buffers: this saves two buffers of 17 KiB while it is open.
            unsafe copenssl_SSL_CTX_set_mode_release_buffers(context.pointer)
            // Records that come together are read together, at once.
            unsafe copenssl_SSL_CTX_set_read_ahead(context.pointer)
            // Renegotiation is not used here, and would let a peer cause work on this side.
            unsafe copenssl_SSL_CTX_set_no_renegotiation(context.pointer)
            return context
        }
    }
}
