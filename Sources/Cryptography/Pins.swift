internal import Base
internal import COpenSSL

/// SHA-256 digests of keys (pins) or of certificates. A verified chain must have one of these digests.
struct RequiredDigests {
    /// Octets of a SHA-256 digest.
    private static let length = 32
    /// The most keys of a chain that a refusal lists; real chains have two to four.
    private static let keysShown = 8

    private let digests: [[UInt8]]

    init(_ digests: [[UInt8]]) throws(TLSError) {
        for digest in digests where digest.count != Self.length { throw .pinLength(digest.count) }
        self.digests = digests
    }

    /// The reason to refuse the chain that OpenSSL has accepted in `verification`, by digests of SubjectPublicKeyInfos
    /// (RFC 7469 §2.4); nil if the chain is not refused.
    func refusal(ofKeys verification: OpaquePointer) -> TLSError? {
        guard let keys = unsafe mismatch(verification, Self.digest(ofKey:)) else { return nil }
        let has = keys.prefix(Self.keysShown).map { "sha256/\(Base64.standard.encode($0))" }
        return .pinMismatch(has: keys.count > Self.keysShown ? has + ["…"] : has)
    }

    /// The reason by digests of the certificates' signed parts (TBSCertificate, RFC 5280 §4.1.1.1), as in a DNS stamp.
    func refusal(ofCertificates verification: OpaquePointer) -> TLSError? {
        unsafe mismatch(verification, Self.digest(ofCertificate:)).map { _ in .certificateHash }
    }

    /// The digests of the chain that OpenSSL has accepted in `verification` (an X509_STORE_CTX), if no required digest
    /// is among them; nil if a required digest is, or if none is required. Only the verified chain counts, not all
    /// certificates that the server sent: any server can send a public certificate.
    private func mismatch(
        _ verification: OpaquePointer, _ digest: (OpaquePointer?) -> [UInt8]?
    ) -> [[UInt8]]? {
        guard !digests.isEmpty else { return nil }
        let chain = unsafe X509_STORE_CTX_get0_chain(verification)
        var found: [[UInt8]] = []
        // Sound: the chain and its certificates belong to the verification, which outlives this call.
        for index in 0..<(unsafe max(0, copenssl_sk_X509_num(chain))) {
            guard let digest = unsafe digest(copenssl_sk_X509_value(chain, index)) else { continue }
            if digests.contains(digest) { return nil }
            found.append(digest)
        }
        return found
    }

    /// The SHA-256 digest of an X509's SubjectPublicKeyInfo.
    private static func digest(ofKey certificate: OpaquePointer?) -> [UInt8]? {
        guard let key = unsafe X509_get_X509_PUBKEY(certificate) else { return nil }
        var digest = [UInt8](repeating: 0, count: length)
        // Sound: the item describes an X509_PUBKEY, and `digest` has room for the octets of SHA-256.
        let isDone = unsafe ASN1_item_digest(
            X509_PUBKEY_it(), EVP_sha256(), UnsafeMutableRawPointer(key), &digest, nil)
        return isDone == 1 ? digest : nil
    }

    /// The SHA-256 digest of an X509's signed part.
    private static func digest(ofCertificate certificate: OpaquePointer?) -> [UInt8]? {
        // Sound: without an output buffer, only the length is returned. Then the buffer has room for that many octets.
        let count = unsafe Int(i2d_X509(certificate, nil))
        guard count > 0 else { return nil }
        var encoded = [UInt8](repeating: 0, count: count)
        unsafe encoded.withUnsafeMutableBufferPointer { room in
            var start = room.baseAddress
            _ = unsafe i2d_X509(certificate, &start)
        }
        // The signed part, as its issuer signed it, is the first element inside the outer element.
        guard let outer = element(encoded, at: 0), let signed = element(encoded, at: outer.content) else { return nil }
        let part = Array(encoded[outer.content..<signed.end])
        var digest = [UInt8](repeating: 0, count: length)
        // Sound: `digest` has room for the octets of SHA-256.
        return unsafe EVP_Digest(part, part.count, &digest, nil, EVP_sha256(), nil) == 1 ? digest : nil
    }

    /// The start of the content, and the end, of the element at an offset of DER (X.690 §8.1); nil if there is no whole
    /// element.
    static func element(_ bytes: [UInt8], at offset: Int) -> (content: Int, end: Int)? {
        guard offset + 2 <= bytes.count else { return nil }
        var content = offset + 2
        var length = Int(bytes[offset + 1])
        if length >= 0x80 {
            let octets = length - 0x80
            guard 1...4 ~= octets, content + octets <= bytes.count else { return nil }
            length = bytes[content..<content + octets].reduce(0) { $0 << 8 | Int($1) }
            content += octets
        }
        return length <= bytes.count - content ? (content, content + length) : nil
    }
}
