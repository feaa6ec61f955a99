import Base
import HTTP
import Streams
package import Transport

/// One request to a running daemon over its control socket.
package final class ControlClient: @unchecked Sendable {
    // Unchecked: used only on the loop once that has started.
    private let path: String
    private let loop: EventLoop
    private var stream: Stream?
    private var reader = HTTPResponseReader(bodyLimit: longestBody)
    /// Whether a response that goes on has begun.
    private var hasBegun = false
    private var write: ([UInt8]) -> Bool = { _ in true }
    private var done: @Sendable (Result<Response, Failed>) -> Void = { _ in }
    /// A reference to itself from start to end: answers come on the loop even if the starting command no longer waits.
    private var running: ControlClient?

    /// The longest body, in octets: a daemon's status is as long as its settings make it.
    private static let longestBody = 1 << 30
    /// The longest request, and the most octets of a read.
    private static let maximumRead = 64 * 1024

    /// The daemon's response.
    package struct Response: Sendable {
        package let text: String
        /// Whether the request was carried out. If not, `text` has the reason.
        package var isFine: Bool { status == .ok }
        /// Whether the reloaded configuration is wrong.
        package var isOfWrongConfiguration: Bool { status == .unprocessableContent }
        /// Whether the configuration could not be read.
        package var isOfUnreadableConfiguration: Bool { status == .internalServerError }
        fileprivate let status: HTTPStatus?
    }

    /// The reason for which there is no response from a daemon, in one line.
    package struct Failed: Error, Sendable, CustomStringConvertible {
        package let description: String
        /// The daemon runs, but cannot parse the request.
        package var isWrongUsage = false
        /// This user may not use the daemon's socket.
        package var isForbidden = false
    }

    /// - Parameter path: The daemon's control socket.
    package init(_ path: String) throws(SystemError) {
        self.path = path
        loop = try EventLoop(label: "httpdnsd.client")
    }

    /// Sends the request. To be called once.
    /// - Parameters:
    ///   - parameters: Names and values.
    ///   - write: Called on a queue of its own with the new lines of a response that goes on, in order. Nothing more is
    ///     read while it runs. False ends the request, with an empty response.
    ///   - done: Called once.
    package func send(
        _ route: ControlRoute, _ parameters: [(String, String)] = [],
        write: @escaping @Sendable ([UInt8]) -> Bool = { _ in true },
        _ done: @escaping @Sendable (Result<Response, Failed>) -> Void
    ) {
        (self.write, self.done, running) = (write, done, self)
        let writer = HTTPRequestWriter(host: "localhost", keepsConnection: false)
        let target = route.target(parameters)
        let request = route.changes ? writer.post(target) : writer.get(target)
        loop.start()
        loop.submit { [self] in
            do throws(SystemError) {
                stream = try Stream(
                    StreamSocket.connect(toPath: path), isConnected: false, tls: nil, limit: Self.maximumRead,
                    scratch: Scratch(Self.maximumRead), loop: loop, owner: self)
            } catch {
                return end(
                    .failure(Failed(description: "no daemon answers: \(error.explained)", isForbidden: error.isDenied)))
            }
            stream?.send(request.span)
            guard let patience = route.patience else { return }
            loop.deadlineReached = { [unowned self] in
                fail(.protocolBroken("no answer within \(patience / 1_000_000_000) s"))
            }
            loop.setDeadline(Clock.now() + patience)
        }
    }

    /// Watches the daemon's answers. To be called once, instead of ``send(_:_:write:_:)``.
    /// - Parameters:
    ///   - filter: The wanted questions.
    ///   - form: The form of the daemon's lines.
    ///   - write: As of ``send(_:_:write:_:)``.
    ///   - ended: Called once at the end; with nil if `write` has ended the watch.
    package func watch(
        _ filter: WatchFilter, _ form: WatchText.Form, write: @escaping @Sendable ([UInt8]) -> Bool,
        ended: @escaping @Sendable (Failed?) -> Void
    ) {
        send(.watch, [("form", form.rawValue)] + filter.parameters, write: write) { result in
            switch result {
            case .failure(let failed): ended(failed)
            case .success(let response) where response.isFine: ended(nil)
            case .success(let refusal):
                let line = String(refusal.text.prefix { $0 != "\n" })
                ended(Failed(description: line, isWrongUsage: refusal.status == .badRequest))
            }
        }
    }

    private func fail(_ failure: LinkEnd) {
        let words =
            hasBegun
            ? "the daemon has ended" + (failure == .closedByPeer ? "" : ": \(failure)")
            : "no daemon answers at \(path): \(failure)"
        end(.failure(Failed(description: words)))
    }

    private func end(_ result: Result<Response, Failed>) {
        loop.setDeadline(nil)
        stream?.close()
        stream = nil
        loop.stop { [self] in
            running = nil
            done(result)
        }
    }
}

extension ControlClient: StreamOwner {
    func received(_ bytes: Span<UInt8>, on stream: Stream) {
        do throws(HTTPError) {
            if let response = try reader.receive(bytes) {
                let text = String(decoding: response.body, as: UTF8.self)
                return end(.success(Response(text: text, status: HTTPStatus(rawValue: response.status))))
            }
        } catch {
            return fail(.protocolBroken(error.description))
        }
        guard let lines = reader.takeBody() else { return }
        hasBegun = true
        if !lines.isEmpty, !write(lines) { end(.success(Response(text: "", status: .ok))) }
    }

    func ended(_ stream: Stream, isCut: Bool) { fail(.closedByPeer) }

    func failed(_ stream: Stream, _ failure: LinkEnd) { fail(failure) }
}
