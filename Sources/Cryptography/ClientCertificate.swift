internal import COpenSSL

/// A client's certificate with its private key and the intermediate certificates, from a PKCS #12 file (RFC 7292).
@safe struct ClientCertificate: ~Copyable {
    private let certificate: OpaquePointer?
    private let key: OpaquePointer?
    /// A stack of X509.
    private let authorities: OpaquePointer?

    deinit {
        // Sound: each object is owned only here, or is nil, which all three functions accept.
        unsafe X509_free(certificate)
        unsafe EVP_PKEY_free(key)
        unsafe copenssl_sk_X509_pop_free(authorities)
    }

    static func read(pkcs12 bytes: [UInt8], password: [UInt8]) throws(TLSError) -> ClientCertificate {
        guard bytes.count <= Certificate.maximumFileLength, let bio = Owned.memoryBIO(holding: bytes) else {
            throw .clientCertificateUnreadable
        }
        // OpenSSL would stop at a NUL and use only the part of the password before it.
        guard !password.contains(0) else { throw .clientCertificatePassword(given: true) }
        return try withClearErrors { () throws(TLSError) in
            // Without a MAC only some releases of OpenSSL accept a file, and none can reliably detect a wrong password.
            guard let file = unsafe Owned(d2i_PKCS12_bio(bio.pointer, nil), freedBy: PKCS12_free),
                unsafe PKCS12_mac_present(file.pointer) == 1
            else { throw .clientCertificateUnreadable }
            let text = password.map { CChar(bitPattern: $0) } + [0]
            var (key, certificate, authorities): (OpaquePointer?, OpaquePointer?, OpaquePointer?)
            let isRead = unsafe PKCS12_parse(file.pointer, text, &key, &certificate, &authorities) == 1
            // Sound: the function passes on the objects that it sets, and leaves nil when it fails.
            let read = unsafe ClientCertificate(certificate: certificate, key: key, authorities: authorities)
            guard isRead else { throw refusal(password: password) }
            // The certificate is the certificate for the key. Any other certificate counts as an authority's.
            guard unsafe read.key != nil && read.certificate != nil else { throw .clientCertificateIncomplete }
            return read
        }
    }

    /// Makes the sessions of `context` (an SSL_CTX) present the certificate to servers that ask for a certificate.
    func use(in context: OpaquePointer) throws(TLSError) {
        try withClearErrors { () throws(TLSError) in
            // Sound: the context takes references of its own.
            guard unsafe SSL_CTX_use_cert_and_key(context, certificate, key, authorities, 1) != 1 else { return }
            let code = ERR_peek_error()
            switch (ERR_GET_LIB(code), ERR_GET_REASON(code)) {
            case (ERR_LIB_SSL, SSL_R_EE_KEY_TOO_SMALL), (ERR_LIB_SSL, SSL_R_CA_KEY_TOO_SMALL),
                (ERR_LIB_SSL, SSL_R_CA_MD_TOO_WEAK):
                throw .clientCertificateTooWeak
            default: throw .library(code: code)
            }
        }
    }

    /// The reason for which PKCS12_parse failed. Empties the error queue.
    private static func refusal(password: [UInt8]) -> TLSError {
        while true {
            let code = ERR_get_error()
            if code == 0 { return .clientCertificateUnreadable }
            let reason = ERR_GET_REASON(code)
            // RC2, which encrypted files before OpenSSL 3, is only in OpenSSL's legacy provider.
            if reason == copenssl_ERR_R_UNSUPPORTED() { return .clientCertificateEncryption }
            if ERR_GET_LIB(code) == ERR_LIB_PKCS12, reason == PKCS12_R_MAC_VERIFY_FAILURE {
                return .clientCertificatePassword(given: !password.isEmpty)
            }
        }
    }
}
