internal import COpenSSL

/// Names and seals the entries that the daemons of a fleet write to a store, all by one secret. The store must learn
/// nothing from the entries.
///
/// Two keys are derived from the secret by HKDF (RFC 5869) with SHA-256: one names entries by HMAC, so that an equal
/// question has an equal name that reveals nothing without the key; the other gives each name a key of its own, by HMAC
/// too, under which its values are sealed with AES-256-GCM. The name is authenticated with the value, so a value that
/// was moved to another name does not open. A random nonce suffices, since few values are ever sealed under one name's
/// key.
///
/// A seal is for one owner, and must not be shared between queues.
public final class FleetSeal {
    private let namingKey: [UInt8]
    private let sealingKey: [UInt8]
    private let context: Owned

    /// The number of octets in a name.
    public static let nameLength = 16
    /// The number of octets that sealing adds: those of the nonce and the tag.
    public static let overhead = nonceLength + tagLength
    private static let nonceLength = 12
    private static let tagLength = 16
    private static let keyLength = 32
    /// The longest plaintext.
    public static let maximumLength = 1 << 20

    /// - Parameter secret: 32 unpredictable octets or more.
    public init(secret: [UInt8]) throws(CryptographyError) {
        namingKey = Self.derive(secret, "httpdnsd shared cache, names")
        sealingKey = Self.derive(secret, "httpdnsd shared cache, values")
        context = try .cipher("AES-256-GCM", encrypts: 1)
    }

    /// The name of the entry for a question, which has ``nameLength`` octets.
    public func name(of question: [UInt8]) -> [UInt8] {
        Array(Self.authenticator(of: question, under: namingKey).prefix(Self.nameLength))
    }

    /// The value for an entry of this name: ``overhead`` octets longer than the plaintext.
    public func seal(_ plaintext: [UInt8], as name: [UInt8]) throws(CryptographyError) -> [UInt8] {
        guard plaintext.count <= Self.maximumLength else { throw .tooLong(plaintext.count) }
        return try seal(plaintext, as: name, nonce: randomBytes(Self.nonceLength))
    }

    /// Seals with a nonce of 12 octets from the caller, for known vectors.
    package func seal(
        _ plaintext: [UInt8], as name: [UInt8], nonce: [UInt8]
    ) throws(CryptographyError) -> [UInt8] {
        precondition(nonce.count == Self.nonceLength)
        let key = Self.authenticator(of: name, under: sealingKey)
        var output = [UInt8](repeating: 0, count: plaintext.count)
        var tag = [UInt8](repeating: 0, count: Self.tagLength)
        guard run(key, nonce, name, plaintext, into: &output, encrypts: 1), finish(),
            unsafe EVP_CIPHER_CTX_ctrl(context.pointer, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagLength), &tag) == 1
        else { throw .library(code: 0) }
        return nonce + output + tag
    }

    /// The plaintext of a value; nil unless the value was sealed under this name with the same secret.
    public func open(_ value: [UInt8], as name: [UInt8]) -> [UInt8]? {
        guard value.count >= Self.overhead, value.count <= Self.maximumLength + Self.overhead else { return nil }
        let key = Self.authenticator(of: name, under: sealingKey)
        let end = value.count - Self.tagLength
        var tag = Array(value[end...])
        var output = [UInt8](repeating: 0, count: end - Self.nonceLength)
        let (nonce, text) = (Array(value[..<Self.nonceLength]), Array(value[Self.nonceLength..<end]))
        guard run(key, nonce, name, text, into: &output, encrypts: 0),
            unsafe EVP_CIPHER_CTX_ctrl(context.pointer, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagLength), &tag) == 1,
            finish()
        else { return nil }
        return output
    }

    /// Puts the name, as authenticated data, and the text through the cipher.
    private func run(
        _ key: [UInt8], _ nonce: [UInt8], _ name: [UInt8], _ input: [UInt8], into output: inout [UInt8],
        encrypts: Int32
    ) -> Bool {
        // Sound: in GCM the output is as long as the input, and all counts are far below Int32.max.
        var written: Int32 = 0
        return unsafe EVP_CipherInit_ex2(context.pointer, nil, key, nonce, encrypts, nil) == 1
            && EVP_CipherUpdate(context.pointer, nil, &written, name, Int32(name.count)) == 1
            && (input.isEmpty
                || EVP_CipherUpdate(context.pointer, &output, &written, input, Int32(input.count)) == 1)
    }

    /// Ends the text; false if the tag of the opened text is wrong.
    private func finish() -> Bool {
        // Sound: GCM writes nothing here.
        var nothing: [UInt8] = [0]
        var written: Int32 = 0
        return unsafe EVP_CipherFinal_ex(context.pointer, &nothing, &written) == 1
    }

    /// The HMAC-SHA256 (RFC 2104), which has 32 octets.
    private static func authenticator(of octets: [UInt8], under key: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: keyLength)
        var length: UInt32 = 0
        let result = unsafe HMAC(EVP_sha256(), key, Int32(key.count), octets, octets.count, &digest, &length)
        // HMAC fails only without memory; any fixed name would be one that an attacker can guess.
        precondition(unsafe result != nil && length == UInt32(keyLength), "OpenSSL gives no HMAC")
        return digest
    }

    /// The key for a purpose: the first block of HKDF, which is as long as a key.
    private static func derive(_ secret: [UInt8], _ purpose: String) -> [UInt8] {
        let pseudorandom = authenticator(of: secret, under: Array("h1".utf8))
        return authenticator(of: Array(purpose.utf8) + [1], under: pseudorandom)
    }
}
