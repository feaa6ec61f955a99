internal import Base
internal import COpenSSL

/// One TLS connection as bytes in and bytes out: it owns no socket and no clock. Pass the peer's bytes to
/// ``receive(_:)``, and send the peer the bytes of ``takeCiphertext(into:)`` after each call, also after the session
/// failed (an alert may wait there). Made by ``TLSClientContext`` or ``TLSServerContext``; confined to one queue
/// together with its context.
///
/// The end of the peer's TCP stream is not visible here. Without close_notify, which shows as ``State/peerClosed``, any
/// host on the path may have caused that end.
public final class TLSSession {
    public enum State: Equatable, Sendable {
        case handshaking
        case open
        /// close_notify was received. No more is read, and sending goes on (RFC 8446 §6.1).
        case peerClosed
        /// close_notify was sent. No more is read or sent.
        case closed
        case failed(TLSError)
    }

    /// The client's part of a session.
    struct Client {
        let peer: ExpectedPeer
        let key: SessionMemory.Key
        /// The start of the session, in seconds since 1970.
        let began: UInt64
        let memory: SessionMemory
        let pins: RequiredDigests
        let hashes: RequiredDigests
        /// Whether there is a certificate for a server that asks for one.
        let hasCertificate: Bool
        /// The system's authorities; nil: the authorities are not trusted.
        let systemFile: SystemFile?
    }

    /// The most plaintext bytes that wait for the end of the handshake: far more than a request.
    public static let earlyLimit = 64 * 1024
    /// The most bytes that wait in each direction for the caller. A caller that takes the bytes after each call never
    /// reaches this number.
    public static let backlogLimit = 256 * 1024
    /// Ciphertext goes to OpenSSL in pieces of this size, so that its buffer stays this small.
    static let pieceLength = 4096

    public private(set) var state = State.handshaking
    /// Whether the handshake resumed an earlier session; false until it is done.
    public private(set) var isResumed = false
    /// "TLSv1.2" or "TLSv1.3"; empty until the handshake is done.
    public private(set) var protocolVersion = ""

    /// The protocol that ALPN has chosen, such as "h2" (RFC 7301); nil without one, or before the handshake is done.
    public var applicationProtocol: String? { isEstablished ? selectedProtocol : nil }

    /// Whether the handshake is done and this side has not ended the session.
    public var isEstablished: Bool { state == .open || state == .peerClosed }

    private var selectedProtocol: String? {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        unsafe SSL_get0_alpn_selected(ssl.pointer, &name, &length)
        guard let name = unsafe name, length > 0 else { return nil }
        // Sound: the session owns this many octets there, which are copied.
        return unsafe String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
    }

    /// The end of the validity of the peer's certificate, in seconds since 1970. For a resumed session, the certificate
    /// is that of the original handshake. Nil before the end of the handshake, or if the peer has shown none.
    public var certificateEnd: UInt64? {
        // Sound: the certificate belongs to the session, and only a number is taken from it.
        guard isEstablished, let certificate = unsafe SSL_get0_peer_certificate(ssl.pointer) else { return nil }
        return unsafe unixSeconds(X509_get0_notAfter(certificate))
    }

    private let ssl: Owned
    /// The memory BIOs for bytes from the peer and for bytes to the peer, shared with `ssl`.
    private let input: Owned
    private let output: Owned
    let client: Client?
    /// The context of a server's session.
    var server: TLSServerContext?
    private let scratch: Scratch
    /// The period in which the verification of this session, or of the one that it resumes, is valid, in seconds since
    /// 1970.
    var trust: Range<UInt64>?
    /// The number of bytes for the peer.
    private var pending: Int { unsafe BIO_ctrl_pending(output.pointer) }
    private var early: [UInt8] = []
    private var plaintext: [UInt8] = []
    /// Why the peer's certificate was refused: recorded by the verification and used when the handshake then fails.
    var refusal: TLSError?
    /// Whether the server has asked for a client certificate and has not shown yet whether it accepts the certificate.
    /// In TLS 1.3 the server may show that only after the handshake.
    var awaitsAcceptance = false

    /// Takes over an SSL and begins the handshake. A client's first flight is then ready to be taken.
    /// - Parameter trust: The period in which the session that the SSL offers to resume is valid.
    init(
        _ ssl: consuming Owned, client: Client?, trust: Range<UInt64>? = nil, scratch: Scratch
    ) throws(TLSError) {
        guard let input = Owned.memoryBIO(), let output = Owned.memoryBIO() else { throw .library(code: 0) }
        // SSL_set_bio takes over one reference to each BIO. The other reference stays here.
        unsafe BIO_up_ref(input.pointer)
        unsafe BIO_up_ref(output.pointer)
        unsafe SSL_set_bio(ssl.pointer, input.pointer, output.pointer)
        self.input = input
        self.output = output
        self.ssl = ssl
        self.client = client
        self.trust = trust
        self.scratch = scratch
        // Sound: callbacks run only inside calls that this object makes, so the unretained pointer is alive then.
        unsafe SSL_set_ex_data(self.ssl.pointer, Self.selfIndex, Unmanaged.passUnretained(self).toOpaque())
        if client != nil {
            unsafe SSL_set_connect_state(self.ssl.pointer)
            advance()
        } else {
            unsafe SSL_set_accept_state(self.ssl.pointer)
        }
    }

    deinit {
        // The usual end of keep-alive is a connection dropped without close_notify. Unless the shutdown is marked as
        // done, OpenSSL would treat it as an attack and make the session unusable for resumption.
        if case .failed = state { return }
        unsafe SSL_set_shutdown(ssl.pointer, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
    }

    /// Takes bytes from the peer, in any pieces: drives the handshake and decrypts. Ignored when closed or failed.
    public func receive(_ ciphertext: Span<UInt8>) {
        var offset = 0
        if state == .open { plaintext.reserveCapacity(plaintext.count + ciphertext.count) }
        while offset < ciphertext.count, state == .handshaking || state == .open {
            let piece = ciphertext.extracting(offset..<min(offset + Self.pieceLength, ciphertext.count))
            offset += piece.count
            let taken = unsafe piece.withUnsafeBufferPointer {
                unsafe BIO_write(input.pointer, $0.baseAddress, Int32($0.count))
            }
            guard taken == piece.count else { return fail(.library(code: 0)) }
            advance()
        }
    }

    /// Queues bytes for the peer, sent at once when open, else after the handshake. Ignored when closed or failed. The
    /// session fails with ``TLSError/backlog`` if more than ``earlyLimit`` or ``backlogLimit`` bytes would wait.
    public func send(_ plaintext: Span<UInt8>) {
        guard !plaintext.isEmpty else { return }
        switch state {
        case .handshaking:
            guard early.count + plaintext.count <= Self.earlyLimit else { return fail(.backlog) }
            early.append(plaintext)
        case .open, .peerClosed: write(plaintext)
        case .closed, .failed: break
        }
    }

    /// Whether the session is open, has no plaintext to take, and has no part of a record.
    public var isIdle: Bool {
        guard state == .open, plaintext.isEmpty else { return false }
        // A record of which only the header has come does not count as pending. With "RH", OpenSSL waits for a header.
        // Sound: the function returns a static string of two letters and a NUL.
        let reading = unsafe SSL_rstate_string(ssl.pointer)[1]
        return unsafe SSL_has_pending(ssl.pointer) == 0 && reading == CChar(bitPattern: UInt8(ascii: "H"))
    }

    /// Whether the verification of the peer is still valid. It must be at most a day old, and the certificates must not
    /// have expired.
    /// - Parameter now: Seconds since 1970.
    public func isTrusted(at now: UInt64) -> Bool { trust?.contains(now) ?? false }

    /// Whether there are bytes to send to the peer.
    public var hasCiphertext: Bool { pending > 0 }

    /// Appends the bytes to send to the peer.
    public func takeCiphertext(into bytes: inout [UInt8]) { unsafe drain(output.pointer, into: &bytes) }

    /// Appends the decrypted bytes from the peer. Bytes from before the end or a failure can still be taken.
    public func takePlaintext(into bytes: inout [UInt8]) {
        if bytes.isEmpty {
            swap(&bytes, &plaintext)
        } else {
            bytes += plaintext
        }
        plaintext.removeAll(keepingCapacity: plaintext.capacity <= Self.pieceLength)
    }

    /// Ends the session. If it was open, a close_notify for the peer is ready to be taken.
    public func close() {
        guard isAlive else { return }
        let wasOpen = isEstablished
        state = .closed
        early = []
        if wasOpen { unsafe _ = SSL_shutdown(ssl.pointer) }
    }

    private var isAlive: Bool { state == .handshaking || isEstablished }

    // MARK: Driving OpenSSL

    private func advance() {
        if state == .handshaking { shakeHands() }
        if state == .open { read() }
        // A peer can cause output here without reading any of it (KeyUpdate, RFC 8446 §4.6.3).
        if isAlive, pending > Self.backlogLimit { fail(.backlog) }
    }

    private func shakeHands() {
        let outcome = attempt { unsafe SSL_do_handshake(ssl.pointer) }
        switch outcome {
        case .done: break
        case .wantsMore: return
        case .closed: return close()
        case .failed(let error): return fail(refusal ?? explained(error))
        }
        if client?.key.target.requiresProtocol ?? false, selectedProtocol == nil { return fail(.noApplicationProtocol) }
        state = .open
        isResumed = unsafe SSL_session_reused(ssl.pointer) == 1
        // Sound: the function returns a static string.
        protocolVersion = unsafe String(cString: SSL_get_version(ssl.pointer))
        let waiting = early
        early = []
        if !waiting.isEmpty { write(waiting.span) }
    }

    private func read() {
        while state == .open {
            var count = 0
            let outcome = attempt {
                unsafe SSL_read_ex(ssl.pointer, scratch.buffer.baseAddress, scratch.buffer.count, &count)
            }
            switch outcome {
            case .done:
                awaitsAcceptance = false
                unsafe plaintext.append(contentsOf: scratch.first(count))
                if plaintext.count > Self.backlogLimit { fail(.backlog) }
                // A further read that finds nothing would cost a quarter of the previous read.
                if unsafe SSL_has_pending(ssl.pointer) == 0 && BIO_ctrl_pending(input.pointer) == 0 { return }
            case .wantsMore: return
            case .closed: state = .peerClosed
            case .failed(let error): fail(explained(error))
            }
        }
    }

    /// An alert between a server's request for a certificate and its first data is most likely about that certificate.
    private func explained(_ error: TLSError) -> TLSError {
        guard awaitsAcceptance, let client, case .alert(let code) = error, TLSError.isAboutCertificate(alert: code)
        else { return error }
        return client.hasCertificate ? .clientCertificateRefused(alert: code) : .clientCertificateWanted(alert: code)
    }

    private func write(_ bytes: Span<UInt8>) {
        guard pending + bytes.count <= Self.backlogLimit else { return fail(.backlog) }
        let outcome = unsafe bytes.withUnsafeBufferPointer { bytes in
            var count = 0
            return attempt { unsafe SSL_write_ex(ssl.pointer, bytes.baseAddress, bytes.count, &count) }
        }
        switch outcome {
        case .done: break
        case .closed: close()
        // A memory BIO accepts any amount, so this cannot be a wait for room.
        case .wantsMore: fail(.library(code: 0))
        case .failed(let error): fail(error)
        }
    }

    private enum Outcome {
        case done, wantsMore, closed
        case failed(TLSError)
    }

    private func attempt(_ call: () -> Int32) -> Outcome {
        withClearErrors {
            let result = call()
            if result > 0 { return .done }
            switch unsafe SSL_get_error(ssl.pointer, result) {
            case SSL_ERROR_WANT_READ: return .wantsMore
            case SSL_ERROR_ZERO_RETURN: return .closed
            default: return .failed(TLSError(queued: ERR_peek_error()))
            }
        }
    }

    private func fail(_ error: TLSError) {
        state = .failed(error)
        early = []
        // The peer may have failed because of the offered session, so the next connection begins without an offer.
        if let client { client.memory.forget(client.key) }
    }
}
