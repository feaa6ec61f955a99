internal import Base
internal import Cryptography

/// What signs requests by the MD5 of a text that holds the account's secret.
final class SecretDigest {
    private let signer: RequestSigner
    let secret: [UInt8]

    init(_ secret: [UInt8]) throws(RequestError) {
        // The secret stands between separators in the text that is signed, so with an empty one anybody could sign.
        guard !secret.isEmpty else { throw .badSecret(key: "dnsKey") }
        self.secret = secret
        do throws(CryptographyError) {
            signer = try RequestSigner()
        } catch {
            throw .encryption(error)
        }
    }

    /// Appends the end of a target that Alibaba Cloud's version 1 or Baidu takes: `t`, the time in seconds since 1970
    /// until which it is valid, and the signature of `SUBJECT-SECRET-TIME`.
    /// - Parameters:
    ///   - subject: Its place in the target.
    ///   - parameter: The signature's.
    func appendEnd(of subject: Range<Int>, until time: UInt64, as parameter: StaticString, to target: inout [UInt8]) {
        var text: [UInt8] = []
        text.reserveCapacity(256)
        text.append(target.span.extracting(subject))
        text.append("-", secret)
        text.append("-")
        text.appendDecimal(time)
        target.append("&t=")
        target.appendDecimal(time)
        target.append(parameter)
        signer.appendSignature(of: text.span, to: &target)
    }

    /// Appends the signature that Volcengine takes: of values, the secret among them, in ASCII's order, joined by `_`.
    func appendSignature(of values: consuming [[UInt8]], to target: inout [UInt8]) {
        values.sort { $0.lexicographicallyPrecedes($1) }
        var text: [UInt8] = []
        text.reserveCapacity(256)
        for value in values {
            text += value
            text.append(UInt8(ascii: "_"))
        }
        text.removeLast()
        target.append("&sign=")
        signer.appendSignature(of: text.span, to: &target)
    }
}
