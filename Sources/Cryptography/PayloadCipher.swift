internal import COpenSSL

/// Encrypts and decrypts the payloads of the HTTPDNS service's HTTP modes, as raw bytes (the protocol writes them in
/// hexadecimal).
///
/// `aes` is AES-128-CBC with PKCS #7 padding and a new random IV before each ciphertext. `des` is DES-ECB with the same
/// padding and no IV: equal blocks are visible as equal. Neither authenticates a payload, so decrypted text is still
/// hostile.
///
/// Has one OpenSSL context for each direction and only sets the IV again, because making a context costs more than
/// encrypting a name. For one owner; not to be shared between queues.
public final class PayloadCipher {
    public enum Algorithm: Sendable { case des, aes }

    /// The most bytes that ``encrypt(_:)`` or ``decrypt(_:)`` accept: the length of the longest answer body that is
    /// read.
    public static let maximumLength = 65_536

    private let blockLength: Int
    /// The bytes before each ciphertext.
    public let ivLength: Int
    private let encryption: Owned
    private let decryption: Owned
    /// Random bytes for future IVs, taken from the end. Several IVs are fetched at a time, because a call of the
    /// generator takes 1.0 µs, ten times an IV's share of the call.
    private var ivs: [UInt8] = []
    private static let ivsAtOnce = 16

    /// A cipher for `key`, which has 8 (des) or 16 (aes) bytes and is used without derivation.
    public init(_ algorithm: Algorithm, key: [UInt8]) throws(CryptographyError) {
        // With both algorithms the key is as long as a block.
        let wanted = algorithm == .aes ? 16 : 8
        guard key.count == wanted else { throw .keyLength(key.count, wanted: wanted) }
        (blockLength, ivLength) = (wanted, algorithm == .aes ? 16 : 0)
        // Triple DES with one key three times is DES; single DES is only in OpenSSL 3's legacy provider.
        let (name, whole) = algorithm == .aes ? ("AES-128-CBC", key) : ("DES-EDE3-ECB", key + key + key)
        encryption = try .cipher(name, key: whole, encrypts: 1)
        decryption = try .cipher(name, key: whole, encrypts: 0)
    }

    /// The payload for `plaintext`: a new IV and the ciphertext for aes, only the ciphertext for des.
    public func encrypt(_ plaintext: Span<UInt8>) throws(CryptographyError) -> [UInt8] {
        if ivs.count < ivLength { ivs = randomBytes(ivLength * Self.ivsAtOnce) }
        defer { ivs.removeLast(ivLength) }
        return try encrypt(plaintext, iv: ivs.suffix(ivLength))
    }

    /// Encrypts with an IV from the caller, for known vectors. The IV has 16 bytes for aes, and none for des.
    package func encrypt(_ plaintext: Span<UInt8>, iv: ArraySlice<UInt8>) throws(CryptographyError) -> [UInt8] {
        guard plaintext.count <= Self.maximumLength else { throw .tooLong(plaintext.count) }
        precondition(iv.count == ivLength, "an IV is as long as a block")
        // Padding adds between one byte and one block.
        let payload = unsafe written(atMost: ivLength + plaintext.count + blockLength) { output in
            unsafe plaintext.withUnsafeBufferPointer { input in
                _ = unsafe output.update(fromContentsOf: iv)
                guard let start = output.baseAddress else { return nil }
                return unsafe run(encryption.pointer, iv: start, input, start + ivLength).map { ivLength + $0 }
            }
        }
        guard let payload else { throw .library(code: 0) }
        return payload
    }

    /// The plaintext of `payload`. A wrong key nearly always gives ``CryptographyError/badPadding``; about one payload
    /// in 256 decrypts to nonsense instead.
    public func decrypt(_ payload: Span<UInt8>) throws(CryptographyError) -> [UInt8] {
        let length = payload.count - ivLength
        guard payload.count <= Self.maximumLength else { throw .tooLong(payload.count) }
        guard length > 0, length.isMultiple(of: blockLength) else { throw .payloadLength(payload.count) }
        // The room is one block more than the text: OpenSSL may write a whole block before it removes the padding.
        let plaintext = unsafe written(atMost: length + blockLength) { output in
            unsafe payload.withUnsafeBufferPointer { input in
                let ciphertext = unsafe UnsafeBufferPointer(rebasing: input[ivLength...])
                guard let start = output.baseAddress, let iv = input.baseAddress else { return nil }
                return unsafe run(decryption.pointer, iv: iv, ciphertext, start)
            }
        }
        // With whole blocks and a valid key, only the padding can be wrong.
        guard let plaintext else { throw .badPadding }
        return plaintext
    }

    /// An array of the bytes that `write` has written, by its returned count; nil if `write` returned nil. Appends to
    /// an empty array, since an initializer with a size would look the array's type up, for 450 instructions.
    @inline(__always)
    private func written(
        atMost most: Int, _ write: (UnsafeMutableBufferPointer<UInt8>) -> Int?
    ) -> [UInt8]? {
        var bytes: [UInt8] = []
        var written: Int?
        bytes.append(addingCapacity: most) { room in
            unsafe room.withUnsafeMutableBufferPointer { output, count in
                written = unsafe write(output)
                count = written ?? 0
            }
        }
        return written == nil ? nil : bytes
    }

    /// Puts one whole message through `context` and returns the length written; nil: OpenSSL refuses. `iv` is not used
    /// in ECB mode.
    private func run(
        _ context: OpaquePointer, iv: UnsafePointer<UInt8>, _ input: UnsafeBufferPointer<UInt8>,
        _ output: UnsafeMutablePointer<UInt8>
    ) -> Int? {
        // Sound: callers give `output` room for the input and one block, which is the most OpenSSL writes; `iv` points
        // at ivLength bytes; both counts are far below Int32.max.
        var updated: Int32 = 0
        var finished: Int32 = 0
        guard unsafe EVP_CipherInit_ex2(context, nil, nil, iv, -1, nil) == 1,
            unsafe input.isEmpty
                || EVP_CipherUpdate(context, output, &updated, input.baseAddress, Int32(input.count)) == 1,
            unsafe EVP_CipherFinal_ex(context, output + Int(updated), &finished) == 1
        else { return nil }
        return Int(updated) + Int(finished)
    }
}

extension Owned {
    /// A context with which a cipher of OpenSSL encrypts or decrypts.
    static func cipher(_ name: String, key: [UInt8]? = nil, encrypts: Int32) throws(CryptographyError) -> Owned {
        try withClearErrors { () throws(CryptographyError) in
            guard let cipher = unsafe Owned(EVP_CIPHER_fetch(nil, name, nil), freedBy: EVP_CIPHER_free),
                let context = unsafe Owned(EVP_CIPHER_CTX_new(), freedBy: EVP_CIPHER_CTX_free),
                unsafe EVP_CipherInit_ex2(context.pointer, cipher.pointer, key, nil, encrypts, nil) == 1
            else { throw .library(code: ERR_peek_error()) }
            return context
        }
    }
}
