internal import COpenSSL

// The callbacks by which OpenSSL passes certificates and tickets to a session while the session drives it.

extension TLSSession {
    /// The SSL's slot for "application data", which OpenSSL leaves to programs.
    static let selfIndex: Int32 = 0

    static func of(_ ssl: OpaquePointer?) -> TLSSession? {
        // Sound: the slot has the session that `init` put into the slot, or nothing.
        guard let ssl = unsafe ssl, let slot = unsafe SSL_get_ex_data(ssl, selfIndex) else { return nil }
        return unsafe Unmanaged<TLSSession>.fromOpaque(slot).takeUnretainedValue()
    }

    /// The session whose peer `verification` (an X509_STORE_CTX) verifies.
    private static func of(verification: OpaquePointer) -> TLSSession? {
        let slot = unsafe X509_STORE_CTX_get_ex_data(verification, SSL_get_ex_data_X509_STORE_CTX_idx())
        return unsafe of(slot.map { OpaquePointer($0) })
    }

    /// Installs the callbacks of a client's context: the check of a certificate, the server's request for one, and the
    /// arrival of a session to store (with TLS 1.3 after the handshake, perhaps several times).
    static func installClientCallbacks(in context: OpaquePointer) {
        unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER) { accepted, verification in
            // OpenSSL's verdict is final, and the reason is recorded. The exception is a certificate with the
            // alternative address.
            guard accepted == 0, let verification = unsafe verification else { return accepted }
            if let session = unsafe TLSSession.of(verification: verification), let client = session.client {
                if unsafe client.peer.isAccepted(verification) {
                    unsafe X509_STORE_CTX_set_error(verification, X509_V_OK)
                    return 1
                }
                let refusal = unsafe client.peer.refusal(verification)
                session.refusal = refusal.isOfAuthority && client.systemFile?.wasShort ?? false ? .storeUnread : refusal
            }
            return accepted
        }
        // Pins are checked last and still within the verification: a chain that fails them ends the handshake before a
        // byte of the caller was sent. A resumed session is not verified again; it was made under this same context,
        // hence with these pins, and for the same target, hence with these hashes.
        unsafe SSL_CTX_set_cert_verify_callback(
            context,
            { verification, _ in
                let verdict = unsafe X509_verify_cert(verification)
                guard verdict > 0 else { return verdict }
                guard let verification = unsafe verification,
                    let session = unsafe TLSSession.of(verification: verification), let client = session.client
                else { return 0 }
                let refusal = unsafe client.pins.refusal(ofKeys: verification)
                guard let refusal = unsafe refusal ?? client.hashes.refusal(ofCertificates: verification) else {
                    let end = unsafe min(chainEnd(verification), client.began + SessionMemory.longestTrust)
                    session.trust = client.began..<max(client.began, end)
                    return 1
                }
                session.refusal = refusal
                unsafe X509_STORE_CTX_set_error(verification, X509_V_ERR_APPLICATION_VERIFICATION)
                return 0
            }, nil)
        unsafe X509_STORE_set_get_issuer(SSL_CTX_get_cert_store(context)) { issuer, verification, certificate in
            let found = unsafe X509_STORE_CTX_get1_issuer(issuer, verification, certificate)
            guard found == 0, let verification = unsafe verification,
                let file = unsafe TLSSession.of(verification: verification)?.client?.systemFile, file.read()
            else { return found }
            return unsafe X509_STORE_CTX_get1_issuer(issuer, verification, certificate)
        }
        unsafe SSL_CTX_set_cert_cb(
            context,
            { ssl, _ in
                unsafe TLSSession.of(ssl)?.awaitsAcceptance = true
                return 1
            }, nil)
        unsafe SSL_CTX_sess_set_new_cb(context) { ssl, resumable in
            // Sound: returning 1 takes over the reference that comes with the call, so it must be freed here.
            guard let session = unsafe TLSSession.of(ssl), let client = session.client, let trust = session.trust,
                let owned = unsafe Owned(resumable, freedBy: SSL_SESSION_free)
            else { return 0 }
            client.memory.remember(owned, for: client.key, trust: trust)
            return 1
        }
    }
}
