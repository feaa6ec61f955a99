internal import Base
internal import Cryptography

/// What signs requests by the MD5 of a text that holds the account's secret.
final class SecretDigest {
    private let signer: RequestSigner
    private let secret: [UInt8]
    /// The text to be signed; kept to reuse its storage.
    private var signed: [UInt8] = []
    private var end = RequestEnd()

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
    /// - Parameters:
    ///   - subject: Its place in the request.
    ///   - parameter: The signature's.
    func appendEnd(
        of subject: Range<Int>, until time: UInt64, as parameter: StaticString, host: String,
        to request: inout [UInt8]
    ) throws(RequestError) {
        var text = exchange(&signed, with: [])
        defer { signed = text }
        text.removeAll(keepingCapacity: true)
        text.append(request.span.extracting(subject))
        text.append(UInt8(ascii: "-"))
        text.append(contentsOf: secret)
        text.append(UInt8(ascii: "-"))
        text.appendDecimal(time)
        request.append("&t=")
        request.appendDecimal(time)
        request.append(parameter)
        signer.appendSignature(of: text.span, to: &request)
        try end.append(host: host, to: &request)
    }

    /// The values that are the same in each request, and the secret, in ASCII's order.
    func sorted(_ values: [[UInt8]]) -> [[UInt8]] { (values + [secret]).sorted { $0.lexicographicallyPrecedes($1) } }

    /// Appends the end of a request that Volcengine takes: the signature of all values in ASCII's order, joined by `_`.
    /// - Parameters:
    ///   - fixed: See ``sorted(_:)``.
    ///   - others: The places of the other values in the request, two at most.
    func appendEnd(
        ofSorted fixed: [[UInt8]], with others: [Range<Int>], host: String, to request: inout [UInt8]
    ) throws(RequestError) {
        var text = exchange(&signed, with: [])
        defer { signed = text }
        text.removeAll(keepingCapacity: true)
        Self.append(fixed, others, of: request.span, to: &text)
        request.append("&sign=")
        signer.appendSignature(of: text.span, to: &request)
        try end.append(host: host, to: &request)
    }

    private static func append(
        _ fixed: [[UInt8]], _ others: [Range<Int>], of bytes: Span<UInt8>, to text: inout [UInt8]
    ) {
        var others = others[...]
        if others.count == 2, precedes(bytes.extracting(others[1]), bytes.extracting(others[0])) { others.swapAt(0, 1) }
        for value in fixed {
            while let other = others.first, precedes(bytes.extracting(other), value.span) {
                text.append(bytes.extracting(other))
                text.append(UInt8(ascii: "_"))
                others.removeFirst()
            }
            text.append(contentsOf: value)
            text.append(UInt8(ascii: "_"))
        }
        for other in others {
            text.append(bytes.extracting(other))
            text.append(UInt8(ascii: "_"))
        }
        text.removeLast()
    }

    private static func precedes(_ a: Span<UInt8>, _ b: Span<UInt8>) -> Bool {
        var index = 0
        while index < a.count, index < b.count {
            if a[index] != b[index] { return a[index] < b[index] }
            index += 1
        }
        return a.count < b.count
    }
}
