internal import COpenSSL

/// The reason for which a payload could not be encrypted or decrypted, or a certificate not be made. An error never
/// contains key or payload bytes.
public enum CryptographyError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The key has `count` bytes, and the algorithm needs `wanted`.
    case keyLength(Int, wanted: Int)
    /// `count` bytes cannot be a payload: empty, not whole blocks, or too short for the IV.
    case payloadLength(Int)
    /// The payload has more than ``PayloadCipher/maximumLength`` bytes.
    case tooLong(Int)
    /// The last block does not end in PKCS #7 padding: the key is wrong, or the bytes are not a payload at all.
    case badPadding
    /// The text is not a DNS name for a certificate (RFC 5280 §4.2.1.6).
    case certificateName(String)
    /// The requested certificate has no name or address, or is for less than a day or more than a hundred years.
    case certificateRequest
    /// OpenSSL refused for a reason of its own. The code is packed; 0 if OpenSSL gave none.
    case library(code: UInt)

    public var description: String {
        switch self {
        case .keyLength(let count, let wanted): "the key has \(count) bytes, \(wanted) are needed"
        case .payloadLength(let count): "\(count) bytes are not an encrypted payload"
        case .tooLong(let count): "\(count) bytes are more than a payload may have (\(PayloadCipher.maximumLength))"
        case .badPadding: "the payload does not decrypt (another key?)"
        case .certificateName(let name): "\(printable(name.utf8)) cannot be a name in a certificate"
        case .certificateRequest: "a certificate needs a name or an address, and a number of days"
        case .library(let code): "OpenSSL: \(errorText(code))"
        }
    }
}

/// OpenSSL's text for a packed error code.
func errorText(_ code: UInt) -> String {
    // Sound: the function returns nil or a static string of the library.
    guard code != 0, let text = unsafe ERR_reason_error_string(code) else { return "no reason given" }
    return unsafe String(cString: text)
}

/// Foreign bytes as one short line that cannot forge a log entry: each octet outside printable ASCII becomes `?`.
func printable(_ bytes: some Sequence<UInt8>, limit: Int = 253) -> String {
    String(decoding: bytes.prefix(limit).map { 0x20...0x7E ~= $0 ? $0 : 0x3F }, as: UTF8.self)
}
