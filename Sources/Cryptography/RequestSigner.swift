internal import Base
internal import COpenSSL

/// Makes the signatures of requests, in lower-case hexadecimal: plain MD5 over a text with the secret, as for several
/// HTTPDNS services, or HMAC-SHA256.
///
/// A signer reuses one OpenSSL context for all signatures, since making a context costs more than a signature. A signer
/// is for one owner, and must not be shared between queues.
public final class RequestSigner {
    private let isHMAC: Bool
    /// The algorithm, an EVP_MD or EVP_MAC.
    private let algorithm: Owned
    /// The context, an EVP_MD_CTX or EVP_MAC_CTX.
    private let context: Owned

    /// Signs with MD5 (RFC 1321).
    public init() throws(CryptographyError) {
        isHMAC = false
        algorithm = try Self.owned { unsafe Owned(EVP_MD_fetch(nil, "MD5", nil), freedBy: EVP_MD_free) }
        context = try Self.owned { unsafe Owned(EVP_MD_CTX_new(), freedBy: EVP_MD_CTX_free) }
    }

    /// Signs with HMAC-SHA256 (RFC 2104).
    public init(hmacSHA256 key: [UInt8]) throws(CryptographyError) {
        isHMAC = true
        let mac = try Self.owned { unsafe Owned(EVP_MAC_fetch(nil, "HMAC", nil), freedBy: EVP_MAC_free) }
        context = try Self.owned {
            guard let context = unsafe Owned(EVP_MAC_CTX_new(mac.pointer), freedBy: EVP_MAC_CTX_free),
                unsafe copenssl_HMAC_init(context.pointer, key, key.count, "SHA256") == 1
            else { return nil }
            return context
        }
        algorithm = mac
    }

    private static func owned(_ make: () -> Owned?) throws(CryptographyError) -> Owned {
        try withClearErrors { () throws(CryptographyError) in
            guard let object = make() else { throw .library(code: ERR_peek_error()) }
            return object
        }
    }

    /// Appends the signature of `text`. If OpenSSL fails, appends nothing, so that the service refuses the request.
    public func appendSignature(of text: Span<UInt8>, to request: inout [UInt8]) {
        var digest = InlineArray<32, UInt8>(repeating: 0)
        var length = 0
        // Sound: the digest has room for 32 octets, MD5 gives 16 and SHA-256 32; the text is read during the calls.
        var room = digest.mutableSpan
        unsafe text.withUnsafeBufferPointer { text in
            unsafe room.withUnsafeMutableBufferPointer { room in
                guard let start = room.baseAddress else { return }
                if isHMAC {
                    if unsafe EVP_MAC_init(context.pointer, nil, 0, nil) == 1,
                        unsafe EVP_MAC_update(context.pointer, text.baseAddress, text.count) == 1
                    {
                        unsafe _ = EVP_MAC_final(context.pointer, start, &length, room.count)
                    }
                } else if unsafe EVP_DigestInit_ex2(context.pointer, algorithm.pointer, nil) == 1,
                    unsafe EVP_DigestUpdate(context.pointer, text.baseAddress, text.count) == 1
                {
                    var count: UInt32 = 0
                    unsafe _ = EVP_DigestFinal_ex(context.pointer, start, &count)
                    length = Int(count)
                }
            }
        }
        Hexadecimal.append(digest.span.extracting(0..<length), to: &request)
    }
}
