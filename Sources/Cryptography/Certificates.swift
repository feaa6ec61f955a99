internal import COpenSSL

/// The only owner of an X509; a class because arrays cannot contain noncopyable values.
final class Certificate {
    /// The longest file with certificates or a key, in bytes; the largest system bundles have a quarter of a megabyte.
    static let maximumFileLength = 4 << 20

    private let owned: Owned
    /// The X509, valid for as long as this object lives.
    var pointer: OpaquePointer { unsafe owned.pointer }

    private init(_ owned: consuming Owned) { self.owned = owned }

    /// The certificates of PEM text, or the single certificate of DER bytes. Nil if the bytes are neither.
    static func read(pemOrDER bytes: [UInt8]) -> [Certificate]? {
        read(pem: bytes) ?? read(der: bytes).map { [$0] }
    }

    /// All certificates of PEM text in order, without the text between them. Nil if there is no certificate, or if one
    /// of them cannot be read.
    static func read(pem bytes: [UInt8]) -> [Certificate]? {
        guard bytes.count <= maximumFileLength, let bio = Owned.memoryBIO(holding: bytes) else { return nil }
        return withClearErrors {
            var certificates: [Certificate] = []
            while let next = unsafe Owned(PEM_read_bio_X509(bio.pointer, nil, noPassword, nil), freedBy: X509_free) {
                certificates.append(Certificate(next))
            }
            // "No start line" is OpenSSL's sign for the end of the file; any other error is a damaged certificate.
            let error = ERR_peek_last_error()
            let ended = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE
            return ended && !certificates.isEmpty ? certificates : nil
        }
    }

    private static func read(der bytes: [UInt8]) -> Certificate? {
        guard bytes.count <= maximumFileLength, let bio = Owned.memoryBIO(holding: bytes) else { return nil }
        guard let owned = unsafe Owned(d2i_X509_bio(bio.pointer, nil), freedBy: X509_free),
            unsafe BIO_ctrl_pending(bio.pointer) == 0
        else { return nil }
        return Certificate(owned)
    }
}

extension Owned {
    /// An EVP_PKEY from unencrypted PEM text.
    static func privateKey(pem bytes: [UInt8]) -> Owned? {
        guard bytes.count <= Certificate.maximumFileLength, let bio = memoryBIO(holding: bytes) else { return nil }
        return unsafe Owned(PEM_read_bio_PrivateKey(bio.pointer, nil, noPassword, nil), freedBy: EVP_PKEY_free)
    }
}

/// Refuses a PEM block that needs a password; OpenSSL's default would ask for it on the terminal.
private let noPassword: @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 =
    { _, _, _, _ in -1 }
