package import Base
package import Cryptography
package import Transport

/// Receives the events of a stream. The owner keeps the stream alive, and closes it when told of its end or failure.
package protocol StreamOwner: AnyObject {
    /// The connection is established; with TLS, the handshake follows.
    func connected(_ stream: Stream)
    /// The handshake is done and the peer's certificate accepted.
    func secured(_ stream: Stream)
    /// Decrypted octets from the peer. They are valid during the call, in which no other stream of the loop may be
    /// read.
    func received(_ bytes: Span<UInt8>, on stream: Stream)
    /// The peer will send no more.
    /// - Parameter isCut: TCP ended without TLS's close_notify, which anyone on the path can cause.
    func ended(_ stream: Stream, isCut: Bool)
    /// The stream is of no use any more. May be called while something is sent, unless the peer has reset the connection:
    /// then what came before is received first.
    func failed(_ stream: Stream, _ failure: StreamFailure)
    /// The peer has read some of what waited for it.
    func written(_ stream: Stream)
    /// After ``Stream/finish()``: all octets are written, and the peer was told that no more will come.
    func finished(_ stream: Stream)
}

extension StreamOwner {
    package func connected(_ stream: Stream) {}
    package func secured(_ stream: Stream) {}
    package func written(_ stream: Stream) {}
    package func finished(_ stream: Stream) {}
}

/// Why a stream is of no use any more.
package enum StreamFailure: Error, Equatable, CustomStringConvertible {
    case system(SystemError)
    case tls(TLSError)
    /// The peer has closed the connection where that was no proper end.
    case closed
    /// The peer leaves more unread than is kept for it.
    case unread

    package var description: String {
        switch self {
        case .system(let error): error.description
        case .tls(let error): error.description
        case .closed: "closed by the server"
        case .unread: "the server takes no more bytes"
        }
    }
}

/// A connection, dialled or accepted, plain or through TLS. It connects, encrypts, queues and closes, and knows no
/// protocol. Confined to its loop, which keeps it from its making to ``close()``.
package final class Stream: EventHandler {
    /// Whom the stream tells of what happens; another one takes over when it is established.
    package unowned var owner: any StreamOwner
    private let loop: EventLoop
    /// Shared memory that octets are read into before they are decrypted or handed on.
    private let scratch: Scratch
    private let tls: TLSSession?
    private var socket: StreamSocket
    /// Nil once the stream is closed.
    private var registration: Registration?
    private var outgoing: StreamBuffer
    package private(set) var isConnected: Bool
    private var isSecured = false
    /// Why nothing can be written any more; what has come may still be read.
    private var broken: SystemError?
    private var ending = Ending.none
    /// Octets dropped since ``finish()``.
    private var discarded = 0

    private enum Ending {
        case none
        /// The octets that were sent are still being written.
        case writing
        /// Everything is written, and the peer was told that no more will come.
        case written
    }

    /// The most octets that are encrypted before they are written: a session holds few.
    private static let maximumPart = 64 * 1024
    /// The most octets that a peer may send after ``finish()``; they are dropped.
    private static let maximumDiscarded = 64 * 1024

    /// - Parameters:
    ///   - socket: one that is connecting, or one that was accepted.
    ///   - isConnected: the socket was accepted. Else the owner is told when the connection is established.
    ///   - limit: the most octets that may wait for the peer to read.
    ///   - scratch: shared by the streams of one loop; its size limits one read.
    package init(
        _ socket: consuming StreamSocket, isConnected: Bool, tls: TLSSession?, limit: Int, scratch: Scratch,
        loop: EventLoop, owner: any StreamOwner
    ) throws(SystemError) {
        (self.isConnected, self.tls, self.scratch, self.loop, self.owner) = (isConnected, tls, scratch, loop, owner)
        self.socket = socket
        outgoing = StreamBuffer(limit: limit)
        // A client's handshake costs a hundred times as much as an answer to one that is established.
        registration = try loop.register(
            self.socket.descriptor, isConnected ? .readable : .writable, givesWay: isConnected && tls != nil, self)
    }

    /// Begins to connect.
    package convenience init(
        to endpoint: Endpoint, by egress: Egress = Egress(), tls: TLSSession?, limit: Int, scratch: Scratch,
        loop: EventLoop, owner: any StreamOwner
    ) throws(StreamFailure) {
        do throws(SystemError) {
            try self.init(
                StreamSocket.connect(to: endpoint, by: egress), isConnected: false, tls: tls, limit: limit,
                scratch: scratch, loop: loop, owner: owner)
        } catch {
            throw .system(error)
        }
    }

    package var isClosed: Bool { registration == nil }

    /// Whether it is established, with TLS to the end of the handshake.
    package var isOpen: Bool { !isClosed && isConnected && (tls == nil || isSecured) }

    /// How many octets wait for the peer to read, with TLS as they are encrypted.
    package var queued: Int { outgoing.count }

    /// Whether it is open and nothing from the peer is held here, not even part of a TLS record.
    package var isIdle: Bool { !isClosed && tls?.isIdle ?? true }

    /// "TLSv1.2" or "TLSv1.3"; empty without TLS.
    package var protocolVersion: String { tls?.protocolVersion ?? "" }

    /// The protocol that ALPN settled on; nil if none was agreed, and without TLS.
    package var applicationProtocol: String? { tls?.applicationProtocol }

    /// Whether its handshake resumed an earlier session.
    package var isResumed: Bool { tls?.isResumed ?? false }

    /// When the peer's certificate ends, in seconds since 1970; nil without TLS and before the handshake is done.
    package var certificateEnd: UInt64? { tls?.certificateEnd }

    /// Whether the verification of the server's certificate may still be relied on; true without TLS.
    /// - Parameter now: Seconds since 1970.
    package func isTrusted(at now: UInt64) -> Bool { tls?.isTrusted(at: now) ?? true }

    /// False: octets from the peer wait in the kernel, and its end is not noticed.
    package var isReading = true {
        didSet { if isReading != oldValue { updateInterest() } }
    }

    /// Has what comes next from the peer acknowledged at once, until something is sent.
    package func acknowledgeAtOnce() { if !isClosed { socket.acknowledgeAtOnce() } }

    /// Queues octets for the peer and writes as many as it takes at once; before the connection is established they
    /// wait. Ignored on a closed stream.
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
                guard try outgoing.send(bytes, to: socket) else { return fail(.unread) }
                updateInterest()
            } catch {
                cannotWrite(error)
            }
        } else if !outgoing.append(bytes) {
            fail(.unread)
        }
    }

    /// Sends no more after what is queued. Octets from the peer are dropped until it closes, since closing first could
    /// destroy the last octets sent (RFC 9112 §9.6).
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
                return fail(.system(error))
            }
            isConnected = true
            owner.connected(self)
        }
        if readiness.contains(.readable) { read() }
        if !isClosed, readiness.contains(.writable) || tls?.hasCiphertext ?? false { flush() }
        if !isClosed, readiness.contains(.writable) { owner.written(self) }
    }

    /// Reads the octets that have come, if any, without waiting for the loop to report them.
    package func read() {
        guard !isClosed else { return }
        do throws(SystemError) {
            switch try socket.receive(into: scratch) {
            case .wouldBlock: return
            case .endOfStream:
                if let broken { fail(.system(broken)) } else { owner.ended(self, isCut: tls != nil) }
            case .bytes(let count):
                guard ending == .none else { return discard(count) }
                let buffer = unsafe scratch.first(count)
                decrypt(unsafe buffer.span)
            }
        } catch {
            fail(.system(error))
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
            // The alert that tells the peer why; that it cannot be sent is not what is wrong.
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
            if outgoing.isOverLimit { return fail(.unread) }
            updateInterest()
            guard isDone, ending == .writing else { return }
            ending = .written
            socket.shutdownSending()
            owner.finished(self)
        } catch {
            cannotWrite(error)
        }
    }

    /// After a reset, reading comes to what was received before it, and then to the end.
    private func cannotWrite(_ error: SystemError) {
        guard error.isReset, isReading else { return fail(.system(error)) }
        broken = error
        updateInterest()
    }

    private func updateInterest() {
        guard let registration, isConnected else { return }
        var interest: Readiness = isReading ? .readable : []
        if !outgoing.isEmpty, broken == nil { interest.insert(.writable) }
        loop.update(registration, interest)
    }

    private func fail(_ failure: StreamFailure) {
        if !isClosed { owner.failed(self, failure) }
    }
}
