import Base
import HTTP
import Streams
package import Transport

/// Watches the answers of a running daemon, through the daemon's control socket.
package final class WatchClient: @unchecked Sendable {
    // Unchecked: used only on the loop once the loop has started.
    private let path: String
    private let loop: EventLoop
    private var stream: Stream?
    private var reader = HTTPResponseReader()
    /// Whether the daemon has begun to send lines.
    private var isWatching = false
    private var write: ([UInt8]) -> Bool = { _ in true }
    private var ended: @Sendable (ControlClient.Failed?) -> Void = { _ in }
    /// A reference to itself from start to end: answers come on the loop even if the starting command no longer waits.
    private var running: WatchClient?

    /// The longest request, and the most octets of a read.
    private static let maximumRead = 64 * 1024

    /// - Parameter path: The daemon's control socket.
    package init(_ path: String) throws(SystemError) {
        self.path = path
        loop = try EventLoop(label: "httpdnsd.watch")
    }

    /// Starts the watch. To be called once.
    /// - Parameters:
    ///   - filter: The wanted questions.
    ///   - form: The form of the daemon's lines.
    ///   - write: Called on a queue of its own with the new lines, in order. Nothing more is read while it runs. False
    ///     ends the watch.
    ///   - ended: Called once at the end; with nil if `write` has ended the watch.
    package func start(
        _ filter: WatchFilter, _ form: WatchText.Form, write: @escaping @Sendable ([UInt8]) -> Bool,
        ended: @escaping @Sendable (ControlClient.Failed?) -> Void
    ) {
        (self.write, self.ended, running) = (write, ended, self)
        loop.start()
        loop.submit { [self] in
            do throws(SystemError) {
                stream = try Stream(
                    StreamSocket.connect(toPath: path), isConnected: false, tls: nil, limit: Self.maximumRead,
                    scratch: Scratch(Self.maximumRead), loop: loop, owner: self)
            } catch {
                return end("no daemon answers: \(error.explained)")
            }
            let request = HTTPRequestWriter(host: "localhost", keepsConnection: false)
                .get(Array("/watch?form=\(form.rawValue)&\(filter.query)".utf8))
            stream?.send(request.span)
        }
    }

    private func end(_ why: String?, isWrongUsage: Bool = false) {
        guard stream != nil || why != nil else { return }
        stream?.close()
        stream = nil
        loop.stop { [self] in
            running = nil
            ended(why.map { ControlClient.Failed(description: $0, isWrongUsage: isWrongUsage) })
        }
    }
}

extension WatchClient: StreamOwner {
    func received(_ bytes: Span<UInt8>, on stream: Stream) {
        do throws(HTTPError) {
            if let refusal = try reader.receive(bytes) {
                let line = String(decoding: refusal.body.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
                return end(line, isWrongUsage: refusal.status == HTTPStatus.badRequest.rawValue)
            }
        } catch {
            return end("what answers at \(path) is no daemon: \(error)")
        }
        guard let lines = reader.takeBody() else { return }
        isWatching = true
        if !lines.isEmpty, !write(lines) { end(nil) }
    }

    func ended(_ stream: Stream, isCut: Bool) {
        end(isWatching ? "the daemon has ended" : "no daemon answers at \(path): closed by the server")
    }

    func failed(_ stream: Stream, _ failure: LinkEnd) {
        end(isWatching ? "the daemon has ended: \(failure)" : "no daemon answers at \(path): \(failure)")
    }
}
