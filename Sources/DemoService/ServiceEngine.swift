public import Base
public import Cryptography
public import DNSWire
import HTTP
public import HTTPDNS
public import Transport

/// The service without its sockets: owns the account and its own names, and turns requests into responses.
///
/// Not `Sendable`: confined, with its conversations, to one queue.
public final class ServiceEngine {
    /// Looks up names that the service does not have itself. `done` is called once, on the engine's queue, at once or
    /// later; a name without a result has no record.
    public typealias Resolve = (
        _ names: [Name], _ family: ServiceFamily, _ done: @escaping ([NameResult]) -> Void
    ) -> Void

    private let accounts: ServiceAccounts
    private let zone = DemoZone()
    private let resolve: Resolve?
    private let configuration: String

    /// - Parameters:
    ///   - addresses: The service's addresses, for its configuration (`/conf`).
    ///   - unixSeconds: Gives the time of day, by which a request's validity is judged.
    public init(
        _ account: DemoAccount, addresses: [IPAddress] = [.v4(127, 0, 0, 1)], resolve: Resolve? = nil,
        unixSeconds: @escaping () -> UInt64 = WallClock.unixSeconds
    ) throws(CryptographyError) {
        accounts = try ServiceAccounts(account, unixSeconds: unixSeconds)
        self.resolve = resolve
        let list = addresses.map(\.description).joined(separator: ";")
        configuration = "log:0|domain:0|ip:\(list)|ttl:\(Self.configurationMinutes)"
    }

    /// How long the service's own configuration is valid, in minutes.
    private static let configurationMinutes = 60

    /// Begins to serve one connection.
    /// - Parameters:
    ///   - isSecure: Whether it is under TLS, which decides by which credential a client proves itself.
    ///   - client: Echoed to a client that asks for its address.
    ///   - send: Called with each response, in the order of the requests; after the last one the connection is to be
    ///     closed.
    public func conversation(
        isSecure: Bool, client: IPAddress, send: @escaping (_ response: [UInt8], _ isLast: Bool) -> Void
    ) -> ServiceConversation {
        ServiceConversation(engine: self, isSecure: isSecure, client: client, send: send)
    }

    /// Answers one request; `done` is called once, with the body of a 200 or with another status.
    func answer(
        _ request: HTTPRequest, isSecure: Bool, client: IPAddress, done: @escaping (Result<[UInt8], Refusal>) -> Void
    ) {
        guard request.method == .get else { return done(.failure(.notImplemented)) }
        let lookup: ServiceRequest
        do throws(Refusal) {
            switch try accounts.parse(request.target, isSecure: isSecure) {
            case .lookup(let asked): lookup = asked
            case .configuration(let cipher): return done(body(configuration, cipher))
            }
        } catch {
            return done(.failure(error))
        }
        let unknown = lookup.names.filter { zone.result($0, lookup.family) == nil }
        guard let resolve, !unknown.isEmpty else { return done(body(lookup, [], client: client)) }
        resolve(unknown, lookup.family) { results in
            done(self.body(lookup, results, client: client))
        }
    }

    private func body(
        _ lookup: ServiceRequest, _ resolved: [NameResult], client: IPAddress
    ) -> Result<[UInt8], Refusal> {
        let lines = lookup.names.map { name in
            line(lookup, name, zone.result(name, lookup.family) ?? resolved.first { $0.name == name }, client)
        }
        return body(lines.joined(separator: "\n"), lookup.cipher)
    }

    private func body(_ text: String, _ cipher: PayloadCipher?) -> Result<[UInt8], Refusal> {
        let text = Array(text.utf8)
        guard let cipher, !text.isEmpty else { return .success(text) }
        guard let payload = try? cipher.encrypt(text.span) else { return .failure(.badRequest) }
        var body: [UInt8] = []
        Hexadecimal.append(payload.span, to: &body)
        return .success(body)
    }

    /// A line of the answer, `[NAME.:]LIST[-LIST][|CLIENT]`; empty for a single name without record if names are not
    /// asked for.
    private func line(
        _ lookup: ServiceRequest, _ name: Name, _ result: NameResult?, _ client: IPAddress
    ) -> String {
        let ipv4 = list(result?.ipv4, withTTL: lookup.wantsTTL)
        let ipv6 = list(result?.ipv6, withTTL: lookup.wantsTTL)
        let isNamed = lookup.wantsName || lookup.names.count > 1
        if ipv4 == nil, ipv6 == nil, !isNamed { return "" }
        var line = isNamed ? "\(name).:" : ""
        switch lookup.family {
        case .ipv4: line += ipv4 ?? "0"
        case .ipv6: line += ipv6 ?? "0"
        case .both: line += "\(ipv4 ?? "0")-\(ipv6 ?? "0")"
        }
        return lookup.wantsClient ? "\(line)|\(lookup.routeIp ?? client)" : line
    }

    private func list(_ result: FamilyResult?, withTTL: Bool) -> String? {
        guard case .addresses(let addresses, let ttl) = result else { return nil }
        let list = addresses.map(\.description).joined(separator: ";")
        return withTTL ? "\(list),\(ttl)" : list
    }
}

/// One client's connection as bytes in and bytes out: answers its requests one after another, so that responses keep
/// the order of pipelined requests.
public final class ServiceConversation {
    /// The longest head, in octets: a batch of eight longest names, encrypted, is 4 KiB.
    private static let headLimit = 16 * 1024
    private static let pipelineLimit = 64 * 1024

    private let engine: ServiceEngine
    private let isSecure: Bool
    private let client: IPAddress
    private let send: ([UInt8], Bool) -> Void
    private var reader = HTTPRequestReader(headLimit: headLimit, pipelineLimit: pipelineLimit)
    private var isAnswering = false
    /// Whether the loop in `advance` is running: an answer that is there at once continues in it, without recursion.
    private var isAdvancing = false
    private var hasEnded = false

    init(
        engine: ServiceEngine, isSecure: Bool, client: IPAddress, send: @escaping ([UInt8], Bool) -> Void
    ) {
        self.engine = engine
        self.isSecure = isSecure
        self.client = client
        self.send = send
    }

    /// Takes bytes from the client, in any pieces. Ignored after the last response.
    public func receive(_ bytes: Span<UInt8>) {
        guard !hasEnded else { return }
        do throws(MalformedRequest) {
            try reader.receive(bytes)
        } catch {
            return respond(.failure(.badRequest), keepAlive: false)
        }
        advance()
    }

    private func advance() {
        guard !isAdvancing else { return }
        isAdvancing = true
        defer { isAdvancing = false }
        while !isAnswering, !hasEnded {
            let request: HTTPRequest
            do throws(MalformedRequest) {
                guard let next = try reader.next() else { return }
                request = next
            } catch {
                return respond(.failure(.badRequest), keepAlive: false)
            }
            isAnswering = true
            engine.answer(request, isSecure: isSecure, client: client) { [weak self] outcome in
                guard let self else { return }
                isAnswering = false
                respond(outcome, keepAlive: request.keepAlive)
                advance()
            }
        }
    }

    private func respond(_ outcome: Result<[UInt8], Refusal>, keepAlive: Bool) {
        guard !hasEnded else { return }
        switch outcome {
        case .success(let body):
            hasEnded = !keepAlive
            write("200 OK", body)
        case .failure(let refusal):
            hasEnded = !keepAlive || refusal.endsConnection
            write("\(refusal.rawValue) \(refusal.reason)", [])
        }
    }

    private func write(_ status: String, _ body: [UInt8]) {
        let head =
            "HTTP/1.1 \(status)\r\nContent-Type: text/plain\r\nContent-Length: \(body.count)\r\n"
            + "Connection: \(hasEnded ? "close" : "keep-alive")\r\n\r\n"
        send(Array(head.utf8) + body, hasEnded)
    }
}
