public import DNSWire
import HTTP
import Streams
public import Transport

/// One request to a running daemon over its control socket.
public final class ControlClient: @unchecked Sendable {
    // Unchecked: used only on the loop once that has started.
    private let path: String
    private let loop: EventLoop
    private var exchange: HTTPExchange?

    /// The requests of the operator's commands.
    public enum Request: Sendable {
        case status(asJSON: Bool)
        case alive
        case ready
        /// Remove the cached answers of these names.
        case flush([NameScope])
        /// Reload the configuration.
        case reload
        /// - Parameter asksAccounts: Whether HTTPDNS accounts are asked too, which bill for the question.
        case explain(String, type: String, asksAccounts: Bool, asJSON: Bool)
    }

    /// The daemon's response.
    public struct Response: Sendable {
        public let text: String
        /// Whether the request was carried out. If not, `text` has the reason.
        public var isFine: Bool { status == .ok }
        /// Whether the reloaded configuration is wrong.
        public var isOfWrongConfiguration: Bool { status == .unprocessableContent }
        /// Whether the configuration could not be read.
        public var isOfUnreadableConfiguration: Bool { status == .internalServerError }
        fileprivate let status: HTTPStatus?
    }

    /// The reason for which there is no response from a daemon, in one line.
    public struct Failed: Error, Sendable, CustomStringConvertible {
        public let description: String
        /// The daemon runs, but cannot parse the request.
        public var isWrongUsage = false
    }

    /// - Parameter path: The daemon's control socket.
    public init(_ path: String) throws(SystemError) {
        self.path = path
        loop = try EventLoop(label: "httpdnsd.client")
    }

    /// Sends the request. To be called once.
    /// - Parameter done: Called once.
    public func send(_ request: Request, _ done: @escaping @Sendable (Result<Response, Failed>) -> Void) {
        loop.start()
        loop.submit { [self] in
            @Sendable func end(_ result: Result<Response, Failed>) {
                exchange = nil
                loop.stop { done(result) }
            }
            loop.deadlineReached = { [self] in
                exchange?.close()
                end(.failure(failed("no answer within \(request.patience / 1_000_000_000) s")))
            }
            do throws(SystemError) {
                exchange = try HTTPExchange(
                    request.octets, on: StreamSocket.connect(toPath: path), loop: loop
                ) { [self] _, outcome in
                    loop.setDeadline(nil)
                    switch outcome {
                    case .failure(let failure): end(.failure(failed(failure.description)))
                    case .success(let response):
                        let text = String(decoding: response.body, as: UTF8.self)
                        end(.success(Response(text: text, status: HTTPStatus(rawValue: response.status))))
                    }
                }
                loop.setDeadline(Clock.now() + request.patience)
            } catch {
                end(.failure(Failed(description: "no daemon answers: \(error.explained)")))
            }
        }
    }

    private func failed(_ reason: String) -> Failed { Failed(description: "no daemon answers at \(path): \(reason)") }
}

extension ControlClient.Request {
    /// How long the daemon may take, in nanoseconds; long lists of names take a while to read.
    fileprivate var patience: UInt64 {
        if case .reload = self { ControlConnection.longestAnswering } else { 5_000_000_000 }
    }

    fileprivate var octets: [UInt8] {
        let writer = HTTPRequestWriter(host: "localhost", keepsConnection: false)
        let target: String
        switch self {
        case .status(let asJSON): target = "/status\(asJSON ? "?format=json" : "")"
        case .alive: target = "/healthz"
        case .ready: target = "/readyz"
        case .flush(let scopes):
            let query = scopes.map { scope in
                switch scope {
                case .only(let name): "name=" + RequestTarget.encoded("\(name)")
                case .under(let name): "under=" + RequestTarget.encoded("\(name)")
                }
            }.joined(separator: "&")
            return writer.post(Array("/flush?\(query)".utf8))
        case .reload: return writer.post(Array("/reload".utf8))
        case .explain(let name, let type, let asksAccounts, let asJSON):
            target =
                "/explain?name=\(RequestTarget.encoded(name))&type=\(RequestTarget.encoded(type))"
                + (asksAccounts ? "&ask=accounts" : "") + (asJSON ? "&format=json" : "")
        }
        return writer.get(Array(target.utf8))
    }
}
