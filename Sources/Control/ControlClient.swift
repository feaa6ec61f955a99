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

    /// A request of one of the operator's commands.
    public struct Request: Sendable {
        fileprivate let target: String
        /// Whether the request changes the daemon's state.
        fileprivate var changes = false
        /// How long the daemon may take, in nanoseconds.
        fileprivate var patience: UInt64 = 5_000_000_000
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

/// All requests.
extension ControlClient.Request {
    public static let alive = Self(target: "/healthz")
    public static let ready = Self(target: "/readyz")
    /// Reload the configuration. Long lists of names take a while to read.
    public static let reload = Self(target: "/reload", changes: true, patience: ControlConnection.longestAnswering)

    public static func status(asJSON: Bool) -> Self { Self(target: "/status\(asJSON ? "?format=json" : "")") }

    /// Remove the cached answers of these names.
    public static func flush(_ scopes: [NameScope]) -> Self {
        let query = scopes.map { scope in
            switch scope {
            case .only(let name): "name=" + RequestTarget.encoded("\(name)")
            case .under(let name): "under=" + RequestTarget.encoded("\(name)")
            }
        }.joined(separator: "&")
        return Self(target: "/flush?\(query)", changes: true)
    }

    /// - Parameter asksAccounts: Whether HTTPDNS accounts are asked too, which bill for the question.
    public static func explain(_ name: String, type: String, asksAccounts: Bool, asJSON: Bool) -> Self {
        Self(
            target: "/explain?name=\(RequestTarget.encoded(name))&type=\(RequestTarget.encoded(type))"
                + (asksAccounts ? "&ask=accounts" : "") + (asJSON ? "&format=json" : ""))
    }

    fileprivate var octets: [UInt8] {
        let writer = HTTPRequestWriter(host: "localhost", keepsConnection: false)
        return changes ? writer.post(Array(target.utf8)) : writer.get(Array(target.utf8))
    }
}
