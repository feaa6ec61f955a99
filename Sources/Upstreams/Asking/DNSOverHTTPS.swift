import Base
import DNSWire
import Forwarding
import HTTP
import Streams

/// DNS messages over HTTPS (RFC 8484), only on HTTP/2. It is as strict as DNS over TLS: a server without a valid
/// certificate is not asked.
final class DNSOverHTTPS: Dialect {
    private let server: Server
    private let answers: DNSAnswers
    private let authority: String
    private let path: String
    private let usesGET: Bool

    private static let mediaType = DNSMediaType.name.description
    /// The pause without `Retry-After`, and the pause after a server has refused the request itself, in seconds.
    private static let usualPause = 5
    private static let longPause = 60

    init(_ server: Server, _ path: String, usesGET: Bool, _ answers: DNSAnswers) {
        (self.server, self.path, self.usesGET, self.answers) = (server, path, usesGET, answers)
        authority = server.authority
    }

    func conversation() -> any ClientConversation {
        let fields = [(name: "accept", value: Self.mediaType)]
        guard !usesGET else {
            return HTTP2(bodyLimit: Int(UInt16.max)) { [authority, path] message in
                let separator = path.contains("?") ? "&" : "?"
                return HTTP2Request(
                    .get, authority: authority, path: "\(path)\(separator)dns=\(Base64.url.encode(message))",
                    fields: fields)
            }
        }
        // Requests differ only in their bodies.
        let head = HTTP2Request(
            .post, authority: authority, path: path, fields: fields + [(name: "content-type", value: Self.mediaType)])
        return HTTP2(bodyLimit: Int(UInt16.max)) { message in
            var request = head
            request?.body = message
            return request
        }
    }

    func request(_ ask: Ask, isRewritten: Bool, at now: Tick, wall: UInt64) throws(Failure) -> [UInt8] {
        try answers.message(ask, to: server, isRewritten: isRewritten, isPadded: true, at: now)
    }

    func read(_ answer: ConversationAnswer, to ask: Ask, isRewritten: Bool, at now: Tick) -> Reading {
        guard case .http(let response) = answer else { return .outOfSync("no HTTP") }
        guard (200..<300).contains(response.status) else { return reading(ofStatus: response) }
        guard response.isDNSMessage ?? true else {
            return .failed(.badAnswer, "an answer that is no DNS message, as a network's login page gives one")
        }
        // HTTP keeps connections open by its own rules.
        var keepAlive: UInt16?
        guard
            let reading = answers.reading(
                of: response.body, to: ask, from: server, isRewritten: isRewritten, keepAlive: &keepAlive, at: now)
        else { return .failed(.badAnswer, "an answer to another question") }
        guard let age = response.age, case .outcome(.answer(var answer), let code, _) = reading else { return reading }
        answer.spend(seconds: age)
        return .outcome(.answer(answer), code: code, provesConnectionInSync: true)
    }

    /// The meaning of a status other than success.
    private func reading(ofStatus response: HTTPResponse) -> Reading {
        let status = response.status
        switch status {
        case 408, 421, 425, 502, 504:
            return .retryOnOtherConnection(Failure(.badAnswer, "HTTP status \(status)", statusCode: status))
        case 429, 503:
            return .failed(
                .tooOften, "HTTP status \(status)", status, retryAfter: response.retryAfter ?? Self.usualPause)
        case 300..<400:
            let failure = Failure.redirect(status, to: response.location, retryAfter: Self.longPause)
            return .outcome(.failed(failure), code: .servFail, provesConnectionInSync: true)
        case 401, 403, 404, 415:
            return .failed(
                .unauthorized, "HTTP status \(status): the server does not take the request; its path may be another",
                status, retryAfter: Self.longPause)
        default: return .failed(.badAnswer, "HTTP status \(status)", status)
        }
    }
}

extension Server {
    /// Host, and the port if it is not 443 (RFC 9110 §7.2).
    fileprivate var authority: String {
        switch host {
        case .name(let name): port == 443 ? name : "\(name):\(port)"
        case .address(let address, _):
            Endpoint(address, port: port).hostField(serverName: certificateName, isSecure: true)
        }
    }
}
