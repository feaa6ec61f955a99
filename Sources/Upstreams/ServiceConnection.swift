import Base
import Cryptography
import Forwarding
import HTTP
import Transport

/// One kept-alive HTTP/1.1 connection to an HTTPDNS server, plain or through TLS; one request at a time.
package final class ServiceConnection: EventHandler {
    let pool: ServiceUpstream.Pool
    /// When it became idle, on the clock's scale in nanoseconds.
    var idleSince: UInt64 = 0

    private unowned let upstream: ServiceUpstream
    private let tls: TLSSession?
    private var socket: StreamSocket
    private var registration: Registration?
    private var outgoing = StreamBuffer(limit: ServiceConnection.maximumQueued)
    private var reader = HTTPResponseReader()
    private var request: QueryID?
    private var isConnected = false
    private var isClosed = false
    private var responses = 0
    /// Nothing of the response to the present request has come.
    private var isSilent = true

    /// A request and a handshake are far smaller.
    private static let maximumQueued = 128 * 1024

    /// How far a connection has come.
    package enum Progress {
        case connected
        /// The certificate was accepted; the protocol's version.
        case secured(String)
    }

    struct Failed: Error {
        let failure: Failure
    }

    /// Begins to connect.
    init(to endpoint: Endpoint, pool: ServiceUpstream.Pool, upstream: ServiceUpstream) throws(Failed) {
        self.pool = pool
        self.upstream = upstream
        do throws(TLSError) {
            tls = try pool.access.tls?.session(to: endpoint.address, at: WallClock.unixSeconds())
        } catch {
            throw Failed(failure: Failure(.untrusted, error.description))
        }
        do throws(SystemError) {
            socket = try StreamSocket.connect(to: endpoint)
            registration = try upstream.loop.register(socket.descriptor, .writable, self)
        } catch {
            throw Failed(failure: Failure(.unreachable, error.description))
        }
    }

    /// Whether a failure now may only mean that the server had closed an idle connection before the request reached it.
    var mayHaveBeenClosedBefore: Bool { responses > 0 && isSilent }

    /// Whether it is open and nothing is left of what the server has sent: the next octets are those of an answer to the
    /// next request.
    var isIdle: Bool { !isClosed && request == nil && reader.isIdle && tls?.isIdle ?? true }

    /// Whether the server's certificate has been verified lately.
    /// - Parameter now: Seconds since 1970.
    func isTrusted(at now: UInt64) -> Bool { tls?.isTrusted(at: now) ?? true }

    func send(_ bytes: [UInt8], for request: QueryID) {
        self.request = request
        isSilent = true
        if let tls {
            tls.send(bytes.span)
        } else if !outgoing.append(bytes.span) {
            return fail(Failure(.unreachable, "the server takes no more bytes"))
        }
        if isConnected { flush() }
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        if let tls, isConnected {
            tls.close()
            var last: [UInt8] = []
            tls.takeCiphertext(into: &last)
            // As far as the socket takes it at once: nobody waits for a goodbye.
            if outgoing.isEmpty, outgoing.append(last.span) { _ = try? outgoing.flush(to: socket) }
        }
        if let registration { upstream.loop.unregister(registration) }
        socket.close()
    }

    func ready(_ readiness: Readiness) {
        if !isConnected {
            do throws(SystemError) {
                try socket.connectResult()
                isConnected = true
                upstream.progressed(.connected)
            } catch {
                return fail(Failure(.unreachable, error.description))
            }
        }
        if readiness.contains(.readable) { receive() }
        if !isClosed, readiness.contains(.writable) || tls?.hasCiphertext ?? false { flush() }
    }

    fileprivate func receive() {
        do throws(SystemError) {
            switch try socket.receive(into: upstream.scratch) {
            case .wouldBlock: return
            case .endOfStream: endOfStream(isCut: tls != nil)
            case .bytes(let count):
                let buffer = unsafe upstream.scratch.first(count)
                take(unsafe buffer.span)
            }
        } catch {
            fail(Failure(.unreachable, error.description))
        }
    }

    private func take(_ bytes: Span<UInt8>) {
        guard let tls else { return takePlaintext(bytes) }
        let wasOpen = tls.state == .open
        tls.receive(bytes)
        if !wasOpen, tls.state == .open { upstream.progressed(.secured(tls.protocolVersion)) }
        var plaintext: [UInt8] = []
        tls.takePlaintext(into: &plaintext)
        if !plaintext.isEmpty { takePlaintext(plaintext.span) }
        guard !isClosed else { return }
        switch tls.state {
        case .failed(let error):
            // The alert that tells the server why.
            flush()
            fail(Failure(.untrusted, error.description))
        case .closed: endOfStream(isCut: false)
        case .handshaking, .open: break
        }
    }

    private func takePlaintext(_ bytes: Span<UInt8>) {
        isSilent = false
        guard request != nil else { return fail(Failure(.badAnswer, "bytes that nobody asked for")) }
        finish { reader throws(HTTPError) in try reader.receive(bytes) }
    }

    private func endOfStream(isCut: Bool) {
        guard request != nil else { return fail(Failure(.unreachable, "closed by the server")) }
        finish { reader throws(HTTPError) in try reader.endOfStream(isCut: isCut) }
        if !isClosed, request != nil { fail(Failure(.unreachable, "closed by the server")) }
    }

    /// Hands on the response if the reader now has a whole one.
    private func finish(_ read: (inout HTTPResponseReader) throws(HTTPError) -> HTTPResponse?) {
        do throws(HTTPError) {
            guard let response = try read(&reader), let request else { return }
            self.request = nil
            responses += 1
            upstream.connection(self, received: response, for: request)
        } catch {
            // A connection that ended before its response began is no bad answer.
            fail(Failure(isSilent ? .unreachable : .badAnswer, isSilent ? "closed by the server" : error.description))
        }
    }

    private func flush() {
        if let tls {
            var ciphertext: [UInt8] = []
            tls.takeCiphertext(into: &ciphertext)
            if !outgoing.append(ciphertext.span) {
                return fail(Failure(.unreachable, "the server takes no more bytes"))
            }
        }
        guard isConnected, let registration else { return }
        do throws(SystemError) {
            let isDone = try outgoing.flush(to: socket)
            upstream.loop.update(registration, isDone ? .readable : [.readable, .writable])
        } catch {
            fail(Failure(.unreachable, error.description))
        }
    }

    private func fail(_ failure: Failure) {
        guard !isClosed else { return }
        close()
        let request = self.request
        self.request = nil
        upstream.connection(self, failed: failure, during: request)
    }
}

extension ServiceUpstream.Pool {
    /// The newest idle connection. What has come on it unasked, or its end, may wait in the socket: it is read first, or it
    /// would be taken for the answer to what is sent now.
    /// - Parameter now: Seconds since 1970.
    func takeIdle(at now: UInt64) -> ServiceConnection? {
        while let connection = idle.popLast() {
            connection.receive()
            if connection.isIdle, connection.isTrusted(at: now) { return connection }
            connection.close()
        }
        return nil
    }
}
