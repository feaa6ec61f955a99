import Base
package import HTTP

/// A DNS message in an HTTP request, and the refusal of a request without one (RFC 8484 §4.1):
///
/// | request | message |
/// | --- | --- |
/// | another path than `/dns-query` | 404 |
/// | POST, `Content-Type: application/dns-message` | the body; 413 if it is longer than a message can be |
/// | POST, another type or none | 415 |
/// | GET with `dns=` in the query | its value, from base64url without padding; 400 if it is invalid |
/// | GET without | 400 |
/// | another method, HEAD too | 405, `Allow: GET, POST` |
///
/// The caller checks whether the octets are a DNS message: octets that would get no answer over UDP get 400.
package enum DNSOverHTTP {
    package static let path: StaticString = "/dns-query"
    package static let methods: StaticString = "GET, POST"
    /// The longest message, in octets.
    package static let longestMessage = 65_535
    private static let parameter: StaticString = "dns="

    package struct Refused: Error { package let status: HTTPStatus }

    package static func message(in request: HTTPServerRequest) throws(Refused) -> [UInt8] {
        if let status = request.refusal { throw Refused(status: status) }
        let target = request.path.span
        let end = firstIndex(of: UInt8(ascii: "?"), in: target, target.indices) ?? target.count
        guard isSame(target, 0..<end, as: path) else { throw Refused(status: .notFound) }
        switch request.method {
        case .post:
            let isMessage = DNSMediaType.isNamed(by: request.contentType.span)
            guard isMessage else { throw Refused(status: .unsupportedMediaType) }
            return request.body
        case .get:
            guard let message = parameter(in: target, from: end) else { throw Refused(status: .badRequest) }
            return message
        case .head, .other: throw Refused(status: .methodNotAllowed)
        }
    }

    /// The octets of the first `dns` in the query of a target.
    /// - Parameter start: The offset of the question mark, or the end.
    private static func parameter(in target: Span<UInt8>, from start: Int) -> [UInt8]? {
        var start = start + 1
        while start < target.count {
            let end = firstIndex(of: UInt8(ascii: "&"), in: target, start..<target.count) ?? target.count
            let value = min(start + parameter.utf8CodeUnitCount, end)
            if isSame(target, start..<value, as: parameter) { return Base64.url.decode(target.extracting(value..<end)) }
            start = end + 1
        }
        return nil
    }
}
