import Base
import Cryptography
import DNSWire
import Forwarding
import HTTP
import Streams
import Transport

/// DNS messages over HTTPS (RFC 8484), on HTTP/2 alone. As strict as DNS over TLS: a server without a valid certificate
/// is not asked.
final class DNSOverHTTPS: Dialect {
    private let server: Server
    private let answers: DNSAnswers
    private let context: TLSClientContext
    private let authority: String
    private let path: String
    private let usesGET: Bool

    /// Servers close after a minute or more without a question, some after four seconds, which is learned.
    let limits = StreamLimits(idleTime: 25_000_000_000)
    let isSecure = true
    let retriesOnFresh = true

    private static let mediaType = "application/dns-message"
    /// The pause when `Retry-After` is missing, and when a server refuses the request itself, in seconds.
    private static let usualPause = 5
    private static let longPause = 60

    init(_ server: Server, _ answers: DNSAnswers, _ context: TLSClientContext) {
        (self.server, self.answers, self.context) = (server, answers, context)
        if case .https(let path, let usesGET) = server.kind {
            (self.path, self.usesGET) = (path, usesGET)
        } else {
            (path, usesGET) = ("/", false)
        }
        authority = server.authority
    }

    func conversation() -> any ClientConversation {
        let fields = [(name: "accept", value: Self.mediaType)]
        guard !usesGET else {
            return HTTP2(bodyLimit: Int(UInt16.max)) { [authority, path] message in
                HTTP2Request(
                    .get, authority: authority, path: "\(path)?dns=\(Base64.url.encode(message))", fields: fields)
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

    func session(to endpoint: Endpoint, at wall: UInt64) throws(TLSError) -> TLSSession? {
        try context.session(to: TLSTarget(endpoint.address, server, protocols: ["h2"]), at: wall)
    }

    /// The server has chosen no protocol that ALPN offered, or ended the handshake because of it.
    private static let withoutHTTP2 = Failure(
        .untrusted, "the server does not offer HTTP/2 (ALPN h2), which DNS over HTTPS is asked by")

    func refusal(of stream: Stream) -> Failure? { stream.applicationProtocol == "h2" ? nil : Self.withoutHTTP2 }

    func meaning(of failure: StreamFailure) -> Failure {
        failure == .tls(.noApplicationProtocol) ? Self.withoutHTTP2 : Failure(failure)
    }

    func request(_ ask: Ask, isAnew: Bool, at now: Tick, wall: UInt64) throws(Unaskable) -> [UInt8] {
        try answers.message(ask, to: server, hasEDNS: !isAnew, isPadded: true, at: now)
    }

    func read(_ answer: ConversationAnswer, to ask: Ask, isAnew: Bool, at now: Tick) -> Reading {
        guard case .http(let response) = answer, case .message(let question) = ask else {
            return .outcome(.failed(Failure(.badAnswer, "no HTTP")), code: .servFail, isInStep: false)
        }
        guard (200..<300).contains(response.status) else { return reading(ofStatus: response) }
        if let mediaType = response.mediaType, mediaType != Self.mediaType {
            return .failed(.badAnswer, "an answer that is no DNS message, as a network's login page gives one")
        }
        guard let reply = answers.read(response.body.span, id: 0, to: question) else {
            return .failed(.badAnswer, "an answer to another question")
        }
        let code = reply.answer.head.responseCode
        switch answers.meaning(of: reply, from: server, asked: isAnew ? .tried : .used, at: now) {
        case .withoutEDNS: return .askAnew
        case .truncated: return .failed(.badAnswer, "truncated over HTTPS")
        case .outcome(.answer(var answer)):
            if let age = response.age { answer.spend(seconds: age) }
            return .outcome(.answer(answer), code: code, isInStep: true)
        case .outcome(let outcome): return .outcome(outcome, code: code, isInStep: true)
        }
    }

    /// The meaning of a status other than success. Redirects are not followed: their target was not configured.
    private func reading(ofStatus response: HTTPResponse) -> Reading {
        let status = response.status
        switch status {
        case 408, 421, 425, 502, 504:
            return .askElsewhere(Failure(.badAnswer, "HTTP status \(status)", statusCode: status))
        case 429, 503:
            return .failed(
                .tooOften, "HTTP status \(status)", status, retryAfter: response.retryAfter ?? Self.usualPause)
        case 300..<400:
            let location = response.location.map { " to \($0)" } ?? ""
            return .failed(
                .unauthorized, "HTTP status \(status): a redirect\(location), which is not followed; name that server",
                status, retryAfter: Self.longPause)
        case 401, 403, 404, 415:
            return .failed(
                .unauthorized, "HTTP status \(status): the server does not take the request; its path may be another",
                status, retryAfter: Self.longPause)
        default: return .failed(.badAnswer, "HTTP status \(status)", status)
        }
    }
}

extension Reading {
    /// A failure after which the server goes on being asked on the same connection.
    fileprivate static func failed(
        _ kind: Failure.Kind, _ detail: String, _ status: Int? = nil, retryAfter: Int? = nil
    ) -> Reading {
        .outcome(
            .failed(Failure(kind, detail, statusCode: status, retryAfter: retryAfter)), code: .servFail, isInStep: true)
    }
}

extension Server {
    /// Host, and the port if it is not 443 (RFC 9110 §7.2).
    fileprivate var authority: String {
        let host =
            switch host {
            case .name(let name): name
            case .address(let address, _): certificateName ?? (address.isIPv4 ? "\(address)" : "[\(address)]")
            }
        return port == 443 ? host : "\(host):\(port)"
    }
}
