public import Base
internal import COpenSSL

/// A self-signed server certificate with a new EC P-256 key, for the demo service on loopback.
///
/// The certificate verifies as a server's for clients that trust it as an anchor. It is not an authority's (CA:FALSE,
/// key usage digitalSignature, extended key usage serverAuth), because some verifiers refuse an authority's certificate
/// for a server, and because trust in it should not mean trust in other certificates signed with its key.
public struct SelfSignedCertificate {
    /// A hundred years. The end of validity still has a year of four digits, the most that X.509 can write.
    public static let maximumDays = 36_500

    /// A certificate for `names` (letters, digits, `-`, `_`; `*` as the first label) and `addresses`, valid from
    /// yesterday, so that clocks may differ, for `days` (1 to ``maximumDays``) from now.
    public static func make(
        names: [String], addresses: [IPAddress], days: Int
    ) throws(CryptographyError) -> (certificatePEM: [UInt8], keyPEM: [UInt8]) {
        for name in names where !isDNSName(name, wildcard: true) { throw .certificateName(name) }
        guard let subject = names.first ?? addresses.first?.description, 1...maximumDays ~= days else {
            throw .certificateRequest
        }
        // The names in OpenSSL's own notation. They were checked, so no name can add another part to the notation.
        let alternativeNames = names.map { "DNS:\($0)" } + addresses.map { "IP:\($0)" }
        return try withClearErrors { () throws(CryptographyError) in
            guard let key = unsafe Owned(copenssl_EVP_EC_gen("P-256"), freedBy: EVP_PKEY_free),
                let certificate = unsafe Owned(X509_new(), freedBy: X509_free),
                unsafe fill(certificate.pointer, subject: subject, key: key.pointer, days: days),
                unsafe extend(certificate.pointer, alternativeNames: alternativeNames.joined(separator: ",")),
                unsafe X509_sign(certificate.pointer, key.pointer, EVP_sha256()) > 0,
                let certificateText = Owned.memoryBIO(), let keyText = Owned.memoryBIO(),
                unsafe PEM_write_bio_X509(certificateText.pointer, certificate.pointer) == 1,
                unsafe PEM_write_bio_PKCS8PrivateKey(keyText.pointer, key.pointer, nil, nil, 0, nil, nil) == 1
            else { throw .library(code: ERR_peek_error()) }
            var pem: (certificatePEM: [UInt8], keyPEM: [UInt8]) = ([], [])
            unsafe drain(certificateText.pointer, into: &pem.certificatePEM)
            unsafe drain(keyText.pointer, into: &pem.keyPEM)
            return pem
        }
    }

    /// Sets all but the extensions and the signature.
    private static func fill(
        _ certificate: OpaquePointer, subject: String, key: OpaquePointer, days: Int
    ) -> Bool {
        let dayLength = 86_400
        // The serial number has 64 bits with the highest clear: positive, and unlikely to repeat (RFC 5280 §4.1.2.2).
        let serial = randomBytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } >> 1 | 1
        let name = unsafe X509_get_subject_name(certificate)
        // A common name may have 64 characters (RFC 5280 appendix A.1). Only people read the common name.
        return unsafe X509_set_version(certificate, Int(X509_VERSION_3)) == 1
            && ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1
            && X509_gmtime_adj(X509_getm_notBefore(certificate), -dayLength) != nil
            && X509_gmtime_adj(X509_getm_notAfter(certificate), days * dayLength) != nil
            && X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, String(subject.prefix(64)), -1, -1, 0) == 1
            && X509_set_issuer_name(certificate, name) == 1
            && X509_set_pubkey(certificate, key) == 1
    }

    private static func extend(_ certificate: OpaquePointer, alternativeNames: String) -> Bool {
        let extensions = [
            (NID_basic_constraints, "critical,CA:FALSE"),
            (NID_key_usage, "critical,digitalSignature"),
            (NID_ext_key_usage, "serverAuth"),
            (NID_subject_key_identifier, "hash"),
            (NID_subject_alt_name, alternativeNames),
        ]
        var context = unsafe X509V3_CTX()
        unsafe X509V3_set_ctx(&context, certificate, certificate, nil, nil, 0)
        return extensions.allSatisfy { identifier, value in
            let made = unsafe X509V3_EXT_nconf_nid(nil, &context, identifier, value)
            guard let owned = unsafe Owned(made, freedBy: X509_EXTENSION_free) else { return false }
            return unsafe X509_add_ext(certificate, owned.pointer, -1) == 1
        }
    }
}
