internal import Base
internal import Cryptography

/// The common parts of accounts that sign their requests, and the signature of most of them: the MD5 of a text with the
/// account's secret.
final class Signing {
    let id: UInt32
    let secret: [UInt8]
    /// The client subnet as text; empty without a client subnet.
    let route: [UInt8]
    /// Seconds for which a request is valid.
    let validity: UInt64
    private let signer: RequestSigner

    init(id: UInt32, secret: [UInt8], routeIp: IPAddress?, validity: UInt64) throws(RequestError) {
        // The secret is between separators in the signed text: with an empty secret any attacker could sign.
        guard !secret.isEmpty else { throw .badSecret(key: "dnsKey") }
        (self.id, self.secret, self.validity) = (id, secret, validity)
        route = Array((routeIp?.description ?? "").utf8)
        do throws(CryptographyError) {
            signer = try RequestSigner()
        } catch {
            throw .encryption(error)
        }
    }

    /// Appends the end of a target for Alibaba Cloud's version 1 or Baidu: `t`, the end of its validity in seconds
    /// since 1970, and the signature of `SUBJECT-SECRET-TIME`.
    /// - Parameters:
    ///   - subject: The range of the subject in the target.
    ///   - parameter: The name of the signature's parameter.
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

    /// Appends the signature for Volcengine: of values, the secret among them, in ASCII order, joined by `_`.
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
