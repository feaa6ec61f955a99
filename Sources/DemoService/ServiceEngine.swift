public import Base
public import Cryptography
internal import DNSWire
import HTTP
internal import HTTPDNS
public import Transport

/// The service without its sockets. The engine owns the account and its names, and turns requests into responses.
///
/// The engine is not `Sendable`: it is confined to one queue, with its conversations.
public final class ServiceEngine {
    private let accounts: ServiceAccounts
    private let other: OtherRequests?
    private let result: (Name, Families) -> NameAddresses
    private let configuration: String

    /// - Parameters:
    ///   - addresses: The service's addresses, for its configuration (`/conf`).
    ///   - unixSeconds: Returns the time of day, for checking a request's validity.
    public convenience init(
        _ account: DemoAccount, addresses: [IPAddress] = [.v4(127, 0, 0, 1)],
        unixSeconds: @escaping () -> UInt64 = WallClock.unixSeconds
    ) throws(CryptographyError) {
        try self.init(account, addresses: addresses, unixSeconds: unixSeconds, result: DemoZone.service.result)
    }

    /// Returns the body of an answer over TLS to a request of another form; nil for a form that is not known either.
    typealias OtherRequests = (_ target: [UInt8]) throws(HTTPStatus) -> [UInt8]?

    /// - Parameter result: Returns the service's result for a name.
    init(
        _ account: DemoAccount, addresses: [IPAddress] = [.v4(127, 0, 0, 1)],
        unixSeconds: @escaping () -> UInt64 = WallClock.unixSeconds,
        other: OtherRequests? = nil, result: @escaping (Name, Families) -> NameAddresses
    ) throws(CryptographyError) {
        (self.other, self.result) = (other, result)
        accounts = try ServiceAccounts(account, unixSeconds: unixSeconds)
        let list = addresses.map(\.description).joined(separator: ";")
        configuration = "log:0|domain:0|ip:\(list)|ttl:\(Self.configurationMinutes)"
    }

    /// The validity of the service's own configuration in minutes.
    private static let configurationMinutes = 60

    /// Begins to serve one connection.
    /// - Parameters:
    ///   - isSecure: Whether the connection uses TLS, which decides the required credential.
    ///   - client: The client's address, echoed in answers on request.
    ///   - send: Called with each response, in the order of the requests. After the last response the connection must
    ///     be closed.
    public func conversation(
        isSecure: Bool, client: IPAddress, send: @escaping ServiceConversation.Send
    ) -> ServiceConversation {
        ServiceConversation(engine: self, isSecure: isSecure, client: client, send: send)
    }

    /// The body of a response with status 200.
    /// - Throws: Any other status.
    func answer(_ request: HTTPRequest, isSecure: Bool, client: IPAddress) throws(HTTPStatus) -> [UInt8] {
        guard request.method == .get else { throw .notImplemented }
        if isSecure, let body = try other?(request.target) { return body }
        let (lookup, cipher) = try accounts.parse(request.target, isSecure: isSecure)
        guard let lookup else { return try body(configuration, cipher) }
        let lines = lookup.names.map { line(lookup, $0, result($0, lookup.family), client) }
        return try body(lines.joined(separator: "\n"), cipher)
    }

    private func body(_ text: String, _ cipher: PayloadCipher?) throws(HTTPStatus) -> [UInt8] {
        let text = Array(text.utf8)
        guard let cipher, !text.isEmpty else { return text }
        guard let payload = try? cipher.encrypt(text.span) else { throw .badRequest }
        var body: [UInt8] = []
        Hexadecimal.append(payload.span, to: &body)
        return body
    }

    /// A line of the answer, `[NAME.:]LIST[-LIST][|CLIENT]`. The line is empty for a single name without record if
    /// names are not requested.
    private func line(
        _ lookup: ServiceRequest, _ name: Name, _ result: NameAddresses, _ client: IPAddress
    ) -> String {
        let ipv4 = list(result.ipv4, withTTL: lookup.wantsTTL)
        let ipv6 = list(result.ipv6, withTTL: lookup.wantsTTL)
        let isNamed = lookup.wantsName || lookup.names.count > 1
        if ipv4 == nil, ipv6 == nil, !isNamed { return "" }
        var line = isNamed ? "\(name).:" : ""
        switch lookup.family {
        case .ipv4: line += ipv4 ?? "0"
        case .ipv6: line += ipv6 ?? "0"
        default: line += "\(ipv4 ?? "0")-\(ipv6 ?? "0")"
        }
        return lookup.wantsClient ? "\(line)|\(lookup.routeIp ?? client)" : line
    }

    private func list(_ result: FamilyAddresses, withTTL: Bool) -> String? {
        guard case .addresses(let addresses, let ttl) = result else { return nil }
        let list = addresses.map(\.description).joined(separator: ";")
        return withTTL ? "\(list),\(ttl)" : list
    }
}

/// One client's connection as bytes in and bytes out, which answers its requests in order.
public final class ServiceConversation: DemoConversation {
    /// The longest head, in octets. A batch of eight encrypted names of maximum length has 4 KiB.
    private static let headLimit = 16 * 1024
    private static let pipelineLimit = 64 * 1024

    private let engine: ServiceEngine
    private let isSecure: Bool
    private let client: IPAddress
    private let send: Send
    private var reader = HTTPRequestReader(headLimit: headLimit, pipelineLimit: pipelineLimit)
    private var hasEnded = false

    init(engine: ServiceEngine, isSecure: Bool, client: IPAddress, send: @escaping Send) {
        (self.engine, self.isSecure, self.client, self.send) = (engine, isSecure, client, send)
    }

    /// Takes bytes from the client, in any fragments. Bytes after the last response are ignored.
    public func receive(_ bytes: Span<UInt8>) {
        guard !hasEnded else { return }
        do throws(MalformedRequest) {
            try reader.receive(bytes)
            while !hasEnded, let request = try reader.next() { answer(request) }
        } catch {
            respond(.badRequest, [], isLast: true)
        }
    }

    private func answer(_ request: HTTPRequest) {
        do throws(HTTPStatus) {
            let body = try engine.answer(request, isSecure: isSecure, client: client)
            respond(.ok, body, isLast: !request.keepAlive)
        } catch {
            respond(error, [], isLast: !request.keepAlive || error == .badRequest || error == .notImplemented)
        }
    }

    private func respond(_ status: HTTPStatus, _ body: [UInt8], isLast: Bool) {
        hasEnded = isLast
        let head =
            "HTTP/1.1 \(status.line)\r\nContent-Type: text/plain\r\nContent-Length: \(body.count)\r\n"
            + "Connection: \(isLast ? "close" : "keep-alive")\r\n\r\n"
        send(Array(head.utf8) + body, isLast)
    }
}

/// A status other than 200, which is 400 for a malformed request, and 401 for an unknown id or token, names encrypted
/// with another key, or an expired request.
extension HTTPStatus: Error {}
