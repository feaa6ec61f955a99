internal import Base
internal import Cryptography

/// What signs requests by the MD5 of a text that holds the account's secret.
struct SecretDigest {
    private let signer: RequestSigner
    private let secret: [UInt8]

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

    /// Appends the end of a request that Alibaba Cloud's version 1 or Baidu takes: `t`, the time in seconds since 1970
    /// until which it is valid, and the signature of `SUBJECT-SECRET-TIME`.
    /// - Parameter parameter: The signature's.
    func appendEnd(
        of subject: ArraySlice<UInt8>, until time: UInt64, as parameter: StaticString, host: String,
        to request: inout [UInt8]
    ) throws(RequestError) {
        request.append("&t=\(time)&\(parameter)=")
        var text = Array(subject)
        text.append(UInt8(ascii: "-"))
        text.append(contentsOf: secret)
        text.append("-\(time)")
        signer.appendSignature(of: text.span, to: &request)
        try request.appendRequestEnd(host: host)
    }

    /// Appends the signature of the values and the secret, in ASCII's order and joined by `_`, as Volcengine has it.
    func append(ofSorted values: [[UInt8]], to request: inout [UInt8]) {
        let sorted = (values + [secret]).sorted { $0.lexicographicallyPrecedes($1) }
        let text = Array(sorted.joined(separator: [UInt8(ascii: "_")]))
        signer.appendSignature(of: text.span, to: &request)
    }
}
