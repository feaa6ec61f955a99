package import Base
import Cryptography
package import HTTP
package import Transport

/// One HTTP/1.1 request and its response on a connection of their own, plain or through TLS: for requests so rare that
/// no connection is kept open. Its owner decides how long it may take.
package final class HTTPExchange {
    package enum Outcome {
        case answered(HTTPResponse)
        case failed(Failure)
    }

    /// Why there is no response.
    package enum Failure: Equatable, CustomStringConvertible {
        /// ``StreamFailure/closed``: the connection ended before a response began.
        case stream(StreamFailure)
        case response(HTTPError)

        package var description: String {
            switch self {
            case .stream(let failure): failure.description
            case .response(let error): error.description
            }
        }
    }

    private let request: [UInt8]
    private let done: (HTTPExchange, Outcome) -> Void
    private var stream: Stream?
    private var reader = HTTPResponseReader()

    /// The longest request, in octets.
    static let maximumRequest = TLSSession.earlyLimit
    private static let maximumQueued = 2 * maximumRequest
    private static let maximumRead = 16_384
    /// The longest body of a trusted peer, in octets: what a daemon says of itself is as long as its settings make it.
    private static let maximumTrusted = 1 << 30

    /// Begins to connect; on the loop.
    /// - Parameter done: Called once, later, unless ``close()`` was called before; everything is closed then.
    package init(
        _ request: [UInt8], to server: Endpoint, _ security: Security, loop: EventLoop,
        done: @escaping (HTTPExchange, Outcome) -> Void
    ) throws(StreamFailure) {
        (self.request, self.done) = (request, done)
        let tls: TLSSession?
        do throws(TLSError) {
            tls = try security.session(to: server.address, at: WallClock.unixSeconds())
        } catch {
            throw .tls(error)
        }
        stream = try Stream(
            to: server, tls: tls, limit: Self.maximumQueued, scratch: Scratch(Self.maximumRead), loop: loop,
            owner: self)
    }

    /// The same on a socket that connects or is connected already, to a trusted peer on this machine.
    package init(
        _ request: [UInt8], on socket: consuming StreamSocket, loop: EventLoop,
        done: @escaping (HTTPExchange, Outcome) -> Void
    ) throws(SystemError) {
        (self.request, self.done) = (request, done)
        reader = HTTPResponseReader(bodyLimit: Self.maximumTrusted)
        stream = try Stream(
            socket, isConnected: false, tls: nil, limit: Self.maximumQueued, scratch: Scratch(Self.maximumRead),
            loop: loop, owner: self)
    }

    /// Ends the exchange without calling `done`.
    package func close() {
        stream?.close()
        stream = nil
    }

    private func finish(_ outcome: Outcome) {
        guard stream != nil else { return }
        close()
        done(self, outcome)
    }
}

extension HTTPExchange: StreamOwner {
    package func connected(_ stream: Stream) {
        let request = request
        stream.send(request.span)
    }

    package func received(_ bytes: Span<UInt8>, on stream: Stream) {
        do throws(HTTPError) {
            if let response = try reader.receive(bytes) { finish(.answered(response)) }
        } catch {
            finish(.failed(.response(error)))
        }
    }

    package func ended(_ stream: Stream, isCut: Bool) {
        do throws(HTTPError) {
            if let response = try reader.endOfStream(isCut: isCut) { return finish(.answered(response)) }
            finish(.failed(.stream(.closed)))
        } catch {
            finish(.failed(.response(error)))
        }
    }

    package func failed(_ stream: Stream, _ failure: StreamFailure) { finish(.failed(.stream(failure))) }
}
