package import Base
package import Cryptography
package import Transport

/// Receives the events of a stream. The owner retains the stream, and closes it after its end or failure.
package protocol StreamOwner: AnyObject {
    /// The connection is established; with TLS, the handshake follows.
    func connected(_ stream: Stream)
    /// The handshake is done and the peer's certificate accepted.
    func secured(_ stream: Stream)
    /// Decrypted octets from the peer, valid during the call, in which no other stream of the loop may be read.
    func received(_ bytes: Span<UInt8>, on stream: Stream)
    /// The peer sends no more.
    /// - Parameter isCut: Whether TCP ended without TLS's close_notify, which any host on the path can cause.
    func ended(_ stream: Stream, isCut: Bool)
    /// The stream is unusable from now on. The call may come during a send, unless the peer has reset the connection:
    /// then earlier octets are received first.
    func failed(_ stream: Stream, _ failure: LinkEnd)
    /// The peer has read some of the waiting octets.
    func written(_ stream: Stream)
    /// After ``Stream/finish()``: all octets are written, and the peer knows that no more will come.
    func finished(_ stream: Stream)
}

extension StreamOwner {
    package func connected(_ stream: Stream) {}
    package func secured(_ stream: Stream) {}
    package func written(_ stream: Stream) {}
    package func finished(_ stream: Stream) {}
}

/// A connection, dialled or accepted, plain or through TLS. It connects, encrypts, queues and closes, and knows no
/// protocol. Confined to its loop, which retains it from its creation to ``close()``.
package final class Stream: EventHandler {
    /// The receiver of the stream's events; another takes over when the stream is established.
    package unowned var owner: any StreamOwner
    private let loop: EventLoop
    /// Shared memory into which octets are read before they are decrypted or passed on.
    private let scratch: Scratch
    private let tls: TLSSession?
    private var socket: StreamSocket
    /// Nil once the stream is closed.
    private var registration: Registration?
    private var outgoing: StreamBuffer
    package private(set) var isConnected: Bool
    private var isSecured = false
    /// The error after which no octet can be written; received octets may still be read.
    private var broken: SystemError?
    private var ending = Ending.none
    /// Octets dropped since ``finish()``.
    private var discarded = 0

    private enum Ending {
        case none
        /// The sent octets are still being written.
        case writing
        /// All octets are written, and the peer knows that no more will come.
        case written
    }

    /// The most octets that are encrypted before they are written, since a session can hold few.
    private static let maximumPart = 64 * 1024
    /// The most octets that a peer may send after ``finish()``; these octets are dropped.
    private static let maximumDiscarded = 64 * 1024

    /// - Parameters:
    ///   - socket: A socket that is connecting, or that was accepted.
    ///   - isConnected: Whether the socket was accepted. Else the owner is called when the connection is established.
    ///   - limit: The most octets that may wait for the peer to read.
    ///   - scratch: Memory that the streams of one loop share; its size limits one read.
    package init(
        _ socket: consuming StreamSocket, isConnected: Bool, tls: TLSSession?, limit: Int, scratch: Scratch,
        loop: EventLoop, owner: any StreamOwner
    ) throws(SystemError) {
        (self.isConnected, self.tls, self.scratch, self.loop, self.owner) = (isConnected, tls, scratch, loop, owner)
        self.socket = socket
        outgoing = StreamBuffer(limit: limit)
        // A new client's handshake costs a hundred times as much as an answer on an established connection.
        registration = try loop.register(
            self.socket.descriptor, isConnected ? .readable : .writable, givesWay: isConnected && tls != nil, self)
    }

    /// Begins to connect.
    package convenience init(
        to endpoint: Endpoint, by egress: Egress = Egress(), tls: TLSSession?, limit: Int, scratch: Scratch,
        loop: EventLoop, owner: any StreamOwner
    ) throws(LinkEnd) {
        do throws(SystemError) {
            try self.init(
                StreamSocket.connect(to: endpoint, by: egress), isConnected: false, tls: tls, limit: limit,
                scratch: scratch, loop: loop, owner: owner)
        } catch {
            throw LinkEnd(error)
        }
    }

    package var isClosed: Bool { registration == nil }

    /// Whether the stream is established; with TLS, after the handshake.
    package var isOpen: Bool { !isClosed && isConnected && (tls == nil || isSecured) }

    /// The number of octets that wait for the peer to read; with TLS, of ciphertext.
    package var queued: Int { outgoing.count }

    /// Whether the stream is open and holds no octets from the peer, not even part of a TLS record.
    package var isIdle: Bool { !isClosed && tls?.isIdle ?? true }

    /// "TLSv1.2" or "TLSv1.3"; empty without TLS.
    package var protocolVersion: String { tls?.protocolVersion ?? "" }

    /// The protocol that ALPN has chosen; nil without a choice or without TLS.
    package var applicationProtocol: String? { tls?.applicationProtocol }

    /// Whether the stream's handshake resumed an earlier session.
    package var isResumed: Bool { tls?.isResumed ?? false }

    /// The end of the peer's certificate, in seconds since 1970; nil without TLS, or before the end of the handshake.
    package var certificateEnd: UInt64? { tls?.certificateEnd }

    /// Whether the verification of the server's certificate is still valid; true without TLS.
    /// - Parameter now: Seconds since 1970.
    package func isTrusted(at now: UInt64) -> Bool { tls?.isTrusted(at: now) ?? true }

    /// Whether octets are read; else they wait in the kernel, and the peer's end is not noticed.
    package var isReading = true {
        didSet { if isReading != oldValue { updateInterest() } }
    }

    /// Acknowledges the next octets from the peer at once, until something is sent.
    package func acknowledgeAtOnce() { if !isClosed { socket.acknowledgeAtOnce() } }

    /// Queues octets for the peer and writes as many as the socket takes at once; before the connection is established
    /// they wait. On a closed stream the call has no effect.
    package func send(_ bytes: Span<UInt8>) {
        guard !isClosed, broken == nil else { return }
        if let tls {
            var rest = bytes
            while !rest.isEmpty, !isClosed, broken == nil {
                let part = rest.extracting(first: min(rest.count, Self.maximumPart))
                rest = rest.extracting(droppingFirst: part.count)
                tls.send(part)
                if case .failed(let error) = tls.state { return fail(.tls(error)) }
                if isConnected { flush() }
            }
        } else if isConnected {
            do throws(SystemError) {
                guard try outgoing.send(bytes, to: socket) else { return fail(.tooSlow) }
                updateInterest()
            } catch {
                cannotWrite(error)
            }
        } else if !outgoing.append(bytes) {
            fail(.tooSlow)
        }
    }

    /// Sends no more after the queued octets. Octets from the peer are dropped until the peer closes, since closing
    /// first could destroy the last octets sent (RFC 9112 §9.6).
    package func finish() {
        guard ending == .none else { return }
        ending = .writing
        tls?.close()
        flush()
    }

    /// Closes at once, with close_notify if the socket takes it immediately. The owner gets no further events.
    package func close() {
        guard let registration else { return }
        if let tls, isConnected {
            tls.close()
            if outgoing.isEmpty {
                outgoing.append { tls.takeCiphertext(into: &$0) }
                _ = try? outgoing.flush(to: socket)
            }
        }
        self.registration = nil
        loop.unregister(registration, closing: true)
        socket.close()
    }

    package func ready(_ readiness: Readiness) {
        if !isConnected {
            do throws(SystemError) {
                try socket.connectResult()
            } catch {
                return fail(LinkEnd(error))
            }
            isConnected = true
            owner.connected(self)
        }
        if readiness.contains(.readable) { read() }
        if !isClosed, readiness.contains(.writable) || tls?.hasCiphertext ?? false { flush() }
        if !isClosed, readiness.contains(.writable) { owner.written(self) }
    }

    /// Reads the waiting octets, if any, without waiting for the loop's event.
    package func read() {
        guard !isClosed else { return }
        do throws(SystemError) {
            switch try socket.receive(into: scratch) {
            case .wouldBlock: return
            case .endOfStream:
                if let broken { fail(LinkEnd(broken)) } else { owner.ended(self, isCut: tls != nil) }
            case .bytes(let count):
                guard ending == .none else { return discard(count) }
                let buffer = unsafe scratch.first(count)
                decrypt(unsafe buffer.span)
            }
        } catch {
            fail(LinkEnd(error))
        }
    }

    private func discard(_ count: Int) {
        discarded += count
        if discarded > Self.maximumDiscarded { owner.ended(self, isCut: true) }
    }

    private func decrypt(_ bytes: Span<UInt8>) {
        guard let tls else { return owner.received(bytes, on: self) }
        tls.receive(bytes)
        if !isSecured, tls.isEstablished {
            isSecured = true
            if let registration { loop.giveWayNoMore(registration) }
            owner.secured(self)
        }
        var plaintext: [UInt8] = []
        tls.takePlaintext(into: &plaintext)
        if !isClosed, !plaintext.isEmpty { owner.received(plaintext.span, on: self) }
        guard !isClosed, ending == .none else { return }
        switch tls.state {
        case .failed(let error):
            // The peer gets an alert with the reason; a failure to send the alert is not the failure to report.
            outgoing.append { tls.takeCiphertext(into: &$0) }
            _ = try? outgoing.flush(to: socket)
            fail(.tls(error))
        case .peerClosed, .closed: owner.ended(self, isCut: false)
        case .handshaking, .open: break
        }
    }

    private func flush() {
        guard !isClosed, broken == nil else { return }
        if let tls { outgoing.append { tls.takeCiphertext(into: &$0) } }
        guard isConnected else { return }
        do throws(SystemError) {
            let isDone = try outgoing.flush(to: socket)
            if outgoing.isOverLimit { return fail(.tooSlow) }
            updateInterest()
            guard isDone, ending == .writing else { return }
            ending = .written
            socket.shutdownSending()
            owner.finished(self)
        } catch {
            cannotWrite(error)
        }
    }

    /// After a reset, reading comes to the octets received before it, and then to the end.
    private func cannotWrite(_ error: SystemError) {
        guard error.isReset, isReading else { return fail(LinkEnd(error)) }
        broken = error
        updateInterest()
    }

    private func updateInterest() {
        guard let registration, isConnected else { return }
        var interest: Readiness = isReading ? .readable : []
        if !outgoing.isEmpty, broken == nil { interest.insert(.writable) }
        loop.update(registration, interest)
    }

    private func fail(_ failure: LinkEnd) {
        if !isClosed { owner.failed(self, failure) }
    }
}
