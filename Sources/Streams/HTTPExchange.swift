package import Base
package import Cryptography
package import Forwarding
package import HTTP
package import Transport

/// One HTTP/1.1 request and its response on a connection of their own, plain or through TLS: for what is asked so rarely
/// that no connection is kept open. How long it may take is its owner's decision.
package final class HTTPExchange: EventHandler {
    package enum Outcome {
        case answered(HTTPResponse)
        case failed(Failure)
    }

    private let loop: EventLoop
    private let tls: TLSSession?
    private let done: (HTTPExchange, Outcome) -> Void
    private var socket: StreamSocket
    private var registration: Registration?
    private var outgoing = StreamBuffer(limit: HTTPExchange.maximumQueued)
    private var reader = HTTPResponseReader()
    private var isConnected = false

    /// Octets of a request at most: what a TLS session keeps until its handshake is done.
    static let maximumRequest = TLSSession.earlyLimit
    private static let maximumQueued = 2 * maximumRequest
    private static let maximumRead = 16_384

    /// Why a connection could not even be begun.
    package struct NotBegun: Error {
        package let failure: Failure
    }

    /// Begins to connect; on the loop.
    /// - Parameter done: Called once, later, unless ``close()`` was called before; everything is closed then.
    package init(
        _ request: [UInt8], to server: Endpoint, tls context: TLSClientContext?, loop: EventLoop,
        done: @escaping (HTTPExchange, Outcome) -> Void
    ) throws(NotBegun) {
        self.loop = loop
        self.done = done
        do throws(TLSError) {
            tls = try context?.session(to: server.address, at: WallClock.unixSeconds())
        } catch {
            throw NotBegun(failure: Failure(.untrusted, error.description))
        }
        do throws(SystemError) {
            socket = try StreamSocket.connect(to: server)
            registration = try loop.register(socket.descriptor, .writable, self)
        } catch {
            throw NotBegun(failure: Failure(.unreachable, error.description))
        }
        if let tls {
            tls.send(request.span)
        } else {
            // Within the limit, as the owner sees to.
            _ = outgoing.append(request.span)
        }
    }

    /// The same on a connection that stands, to somebody who needs not be doubted.
    package init(
        _ request: [UInt8], on socket: consuming StreamSocket, loop: EventLoop,
        done: @escaping (HTTPExchange, Outcome) -> Void
    ) throws(SystemError) {
        (self.loop, self.done, tls) = (loop, done, nil)
        self.socket = socket
        registration = try loop.register(self.socket.descriptor, .writable, self)
        // Within the limit, as the owner sees to.
        _ = outgoing.append(request.span)
    }

    /// Ends without a word.
    package func close() {
        guard let registration else { return }
        self.registration = nil
        loop.unregister(registration)
        socket.close()
    }

    package func ready(_ readiness: Readiness) {
        do throws(SystemError) {
            if !isConnected {
                try socket.connectResult()
                isConnected = true
            }
            if readiness.contains(.readable) { try receive() }
            if registration != nil { try flush() }
        } catch {
            finish(.failed(Failure(.unreachable, error.description)))
        }
    }

    private func receive() throws(SystemError) {
        var buffer = [UInt8](repeating: 0, count: Self.maximumRead)
        var room = buffer.mutableSpan
        switch try socket.receive(into: &room) {
        case .wouldBlock: return
        case .endOfStream: endOfStream(isCut: tls != nil)
        case .bytes(let count):
            buffer.removeLast(buffer.count - count)
            try take(buffer)
        }
    }

    private func take(_ bytes: [UInt8]) throws(SystemError) {
        guard let tls else { return read(bytes) }
        tls.receive(bytes.span)
        var plaintext: [UInt8] = []
        tls.takePlaintext(into: &plaintext)
        if !plaintext.isEmpty { read(plaintext) }
        guard registration != nil else { return }
        switch tls.state {
        case .failed(let error):
            // The alert that tells the server why.
            try flush()
            finish(.failed(Failure(.untrusted, error.description)))
        case .closed: endOfStream(isCut: false)
        case .handshaking, .open: break
        }
    }

    private func read(_ bytes: [UInt8]) {
        do throws(HTTPError) {
            if let response = try reader.receive(bytes.span) { finish(.answered(response)) }
        } catch {
            finish(.failed(Failure(.badAnswer, error.description)))
        }
    }

    private func endOfStream(isCut: Bool) {
        do throws(HTTPError) {
            if let response = try reader.endOfStream(isCut: isCut) { return finish(.answered(response)) }
            finish(.failed(Failure(.unreachable, "closed by the server")))
        } catch {
            finish(.failed(Failure(.badAnswer, error.description)))
        }
    }

    private func flush() throws(SystemError) {
        if let tls {
            var ciphertext: [UInt8] = []
            tls.takeCiphertext(into: &ciphertext)
            guard outgoing.append(ciphertext.span) else {
                return finish(.failed(Failure(.unreachable, "the server takes no more bytes")))
            }
        }
        guard let registration else { return }
        let isDone = try outgoing.flush(to: socket)
        loop.update(registration, isDone ? .readable : [.readable, .writable])
    }

    private func finish(_ outcome: Outcome) {
        guard registration != nil else { return }
        close()
        done(self, outcome)
    }
}

extension Endpoint {
    /// What stands in a request's `Host` (RFC 9110 §7.2).
    /// - Parameter serverName: The name the server goes by; nil or empty: its address.
    package func hostField(serverName: String?, isSecure: Bool) -> String {
        let usualPort: UInt16 = isSecure ? 443 : 80
        guard let serverName, !serverName.isEmpty else { return port == usualPort ? "\(address)" : "\(self)" }
        return port == usualPort ? serverName : "\(serverName):\(port)"
    }
}
