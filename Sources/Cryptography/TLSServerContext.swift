public import Base
internal import COpenSSL

/// Makes the server side of TLS connections (TLS 1.2 and 1.3) with one certificate and its key. Confined to one queue
/// together with its sessions.
public final class TLSServerContext {
    private let context: Owned
    private let scratch = Scratch(TLSSession.pieceLength)
    /// The names of the protocols that are accepted by ALPN, each in its wire form.
    fileprivate let protocols: [[UInt8]]
    fileprivate let refusesOthers: Bool

    /// - Parameters:
    ///   - certificatePEM: The server's certificate, followed by the intermediate certificates in order.
    ///   - newestVersion: The newest TLS version, as the number on the wire.
    ///   - protocols: The ALPN names of the served protocols, the preferred one first (RFC 7301).
    ///   - refusesOthers: Whether a client that offers only other protocols is refused. If not, no protocol is chosen.
    package init(
        certificatePEM: [UInt8], keyPEM: [UInt8], newestVersion: Int32 = TLS1_3_VERSION,
        protocols: [String] = [ApplicationProtocol.http1], refusesOthers: Bool = false
    ) throws(TLSError) {
        (self.protocols, self.refusesOthers) = (protocols.map { protocolList([$0]) }, refusesOthers)
        guard let certificates = Certificate.read(pem: certificatePEM), let leaf = certificates.first else {
            throw .certificateUnreadable
        }
        guard let key = Owned.privateKey(pem: keyPEM) else { throw .keyUnreadable }
        // The context would accept a key of another type, as the key of a certificate that is set later.
        guard unsafe X509_check_private_key(leaf.pointer, key.pointer) == 1 else { throw .keyMismatch }
        context = unsafe try Owned.tlsContext(TLS_server_method())
        // Tickets carry the sessions; the server stores none.
        unsafe copenssl_SSL_CTX_set_session_cache_mode(context.pointer, Int(SSL_SESS_CACHE_OFF))
        unsafe _ = copenssl_SSL_CTX_set_max_proto_version(context.pointer, newestVersion)
        unsafe SSL_CTX_set_alpn_select_cb(context.pointer, chooseProtocol, nil)
        try withClearErrors { () throws(TLSError) in
            guard
                unsafe SSL_CTX_use_certificate(context.pointer, leaf.pointer) == 1,
                unsafe SSL_CTX_use_PrivateKey(context.pointer, key.pointer) == 1
            else { throw .library(code: ERR_peek_error()) }
            for certificate in certificates.dropFirst() {
                guard unsafe copenssl_SSL_CTX_add1_chain_cert(context.pointer, certificate.pointer) == 1 else {
                    throw .library(code: ERR_peek_error())
                }
            }
        }
    }

    /// The start and end of the certificate's validity, in seconds since 1970; 0 for an unreadable time.
    public var validity: (begins: UInt64, ends: UInt64) {
        // Sound: the certificate belongs to the context.
        let certificate = unsafe SSL_CTX_get0_certificate(context.pointer)
        return unsafe (
            unixSeconds(X509_get0_notBefore(certificate)) ?? 0, unixSeconds(X509_get0_notAfter(certificate)) ?? 0
        )
    }

    /// Whether clients that compare the certificate with this name accept it (RFC 6125 §6.4).
    public func isFor(name: String) -> Bool {
        unsafe X509_check_host(SSL_CTX_get0_certificate(context.pointer), name, 0, hostFlags, nil) == 1
    }

    /// Whether clients that compare the certificate with this address accept it.
    public func isFor(_ address: IPAddress) -> Bool {
        let octets = address.octets
        return unsafe X509_check_ip(SSL_CTX_get0_certificate(context.pointer), octets, octets.count, 0) == 1
    }

    /// Replaces the keys of the tickets by which clients resume sessions. Earlier tickets become useless, and the keys
    /// that could decrypt recorded tickets are gone.
    public func changeTicketKeys() {
        let keys = randomBytes(copenssl_ticket_keys_length)
        // Sound: the context copies the keys. It accepts any keys of this length; on failure the old keys stay.
        unsafe keys.withUnsafeBufferPointer {
            unsafe _ = copenssl_SSL_CTX_set_tlsext_ticket_keys(context.pointer, $0.baseAddress, $0.count)
        }
    }

    /// A session for a connection that a client has opened.
    public func session() throws(TLSError) -> TLSSession {
        guard let ssl = unsafe Owned(SSL_new(context.pointer), freedBy: SSL_free) else { throw .library(code: 0) }
        let session = try TLSSession(ssl, client: nil, scratch: scratch)
        session.server = self
        return session
    }
}

/// Chooses the first of this side's protocols that the client offers, whatever the client prefers (RFC 7301 §3.2).
private let chooseProtocol: SSL_CTX_alpn_select_cb_func = { ssl, chosen, chosenLength, offered, offeredLength, _ in
    // Sound: OpenSSL has checked that the list is whole. The choice is returned as a pointer into the list.
    guard let chosen = unsafe chosen, let chosenLength = unsafe chosenLength, let offered = unsafe offered,
        let server = unsafe TLSSession.of(ssl)?.server
    else { return SSL_TLSEXT_ERR_NOACK }
    let list = unsafe UnsafeBufferPointer(start: offered, count: Int(offeredLength))
    for name in server.protocols {
        var index = 0
        while index < list.count {
            let length = unsafe Int(list[index])
            if unsafe list[index...].prefix(1 + length).elementsEqual(name) {
                unsafe chosen.pointee = offered + index + 1
                unsafe chosenLength.pointee = UInt8(length)
                return SSL_TLSEXT_ERR_OK
            }
            index += 1 + length
        }
    }
    return server.refusesOthers ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_NOACK
}
