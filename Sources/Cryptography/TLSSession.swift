internal import COpenSSL

/// One TLS connection as bytes in and bytes out: it owns no socket and no clock. Feed what the peer sent, send to the
/// peer what ``takeCiphertext(into:)`` gives; both after every call, and after the session failed too (an alert may
/// wait there). Made by ``TLSClientContext`` or ``TLSServerContext``; confined to one queue together with its context.
///
/// The end of the peer's stream is not seen here: without close_notify, of which ``State/closed`` tells, anybody can
/// have brought it about.
public final class TLSSession {
    public enum State: Equatable, Sendable {
        case handshaking
        case open
        /// close_notify was sent or has come; nothing more is read or sent.
        case closed
        case failed(TLSError)
    }

    /// What a client's session knows of its peer.
    struct Client {
        let peer: ExpectedPeer
        let target: TLSTarget
        /// Seconds since 1970.
        let began: UInt64
        let memory: SessionMemory
        let pins: Pins
        let hashes: CertificateHashes
        /// Whether there is a certificate to show to a server that asks.
        let hasCertificate: Bool
        /// Nil where the system's store is not trusted.
        let systemFile: SystemFile?
    }

    /// Most bytes of plaintext kept until the handshake is done: far more than a request.
    public static let earlyLimit = 64 * 1024
    /// Most bytes kept in each direction for the caller to take. A caller who takes after every call never gets near.
    public static let backlogLimit = 256 * 1024
    /// Ciphertext goes to OpenSSL in pieces of this size, so that its buffer stays this small.
    static let pieceLength = 4096

    public private(set) var state = State.handshaking
    /// Whether the handshake resumed an earlier session; false until it is done.
    public private(set) var isResumed = false
    /// "TLSv1.2" or "TLSv1.3"; empty until the handshake is done.
    public private(set) var protocolVersion = ""

    /// What ALPN has settled on, "h2" say (RFC 7301); nil until the handshake is done, and when it was left open.
    public var applicationProtocol: String? {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        unsafe SSL_get0_alpn_selected(ssl.pointer, &name, &length)
        guard state == .open, let name = unsafe name, length > 0 else { return nil }
        // Sound: the session owns so many octets there, and they are copied.
        return unsafe String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
    }

    private let ssl: Owned
    /// Memory BIOs, shared with `ssl`: what the peer sent, and what it must be sent.
    private let input: Owned
    private let output: Owned
    let client: Client?
    /// What a server's session speaks.
    var accepted: AcceptedProtocols?
    private let buffer: RecordBuffer
    /// When what was verified for this session, or for the one it resumes, may be relied on, in seconds since 1970.
    var trust: Range<UInt64>?
    private var early: [UInt8] = []
    private var plaintext: [UInt8] = []
    /// Why the peer's certificate was refused; left by the verification for the handshake's failure, which follows.
    var refusal: TLSError?
    /// The server has asked for a certificate, and not shown yet whether what it got will do. In TLS 1.3 it may say so
    /// only after the handshake.
    var awaitsAcceptance = false

    /// Takes over an SSL and begins; a client's first flight is then ready to be taken.
    /// - Parameter trust: What goes with the session that the SSL offers to resume.
    init(
        _ ssl: consuming Owned, client: Client?, trust: Range<UInt64>? = nil, buffer: RecordBuffer
    ) throws(TLSError) {
        guard let input = Owned.memoryBIO(), let output = Owned.memoryBIO() else { throw .library(code: 0) }
        // SSL_set_bio takes over one reference to each; the other stays here.
        unsafe BIO_up_ref(input.pointer)
        unsafe BIO_up_ref(output.pointer)
        unsafe SSL_set_bio(ssl.pointer, input.pointer, output.pointer)
        self.input = input
        self.output = output
        self.ssl = ssl
        self.client = client
        self.trust = trust
        self.buffer = buffer
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
        // A connection dropped without close_notify is the normal end of keep-alive. OpenSSL would take it for an
        // attack and spoil the session for resumption, unless it believes that the closing was done.
        if case .failed = state { return }
        unsafe SSL_set_shutdown(ssl.pointer, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
    }

    /// Takes bytes from the peer, in any pieces; drives the handshake and decrypts. Ignored when closed or failed.
    public func receive(_ ciphertext: Span<UInt8>) {
        var offset = 0
        while offset < ciphertext.count, isAlive {
            let piece = ciphertext.extracting(offset..<min(offset + Self.pieceLength, ciphertext.count))
            offset += piece.count
            let taken = unsafe piece.withUnsafeBufferPointer {
                unsafe BIO_write(input.pointer, $0.baseAddress, Int32($0.count))
            }
            guard taken == piece.count else { return fail(.library(code: 0)) }
            advance()
        }
    }

    /// Queues bytes for the peer: at once when open, after the handshake until then. Ignored when closed or failed.
    /// Fails the session with ``TLSError/backlog`` when more than ``earlyLimit`` or ``backlogLimit`` would wait.
    public func send(_ plaintext: Span<UInt8>) {
        guard !plaintext.isEmpty else { return }
        switch state {
        case .handshaking:
            guard early.count + plaintext.count <= Self.earlyLimit else { return fail(.backlog) }
            unsafe plaintext.withUnsafeBufferPointer { unsafe early.append(contentsOf: $0) }
        case .open: write(plaintext)
        case .closed, .failed: break
        }
    }

    /// Whether it is open and holds nothing of the peer's: neither plaintext to take nor a piece of a record.
    public var isIdle: Bool {
        guard state == .open, plaintext.isEmpty else { return false }
        // A record of which no more than its header is there does not count as pending; "RH" is waiting for a header.
        // Sound: the function returns a static string of two letters and the NUL behind them.
        let reading = unsafe SSL_rstate_string(ssl.pointer)[1]
        return unsafe SSL_has_pending(ssl.pointer) == 0 && reading == CChar(bitPattern: UInt8(ascii: "H"))
    }

    /// Whether the verification of the peer may still be relied on: it was at most a day ago, and its certificates have
    /// not ended.
    /// - Parameter now: Seconds since 1970.
    public func isTrusted(at now: UInt64) -> Bool { trust?.contains(now) ?? false }

    /// Whether something must go to the peer.
    public var hasCiphertext: Bool { unsafe BIO_ctrl_pending(output.pointer) > 0 }

    /// Appends what must go to the peer.
    public func takeCiphertext(into bytes: inout [UInt8]) {
        unsafe drain(output.pointer, into: &bytes)
    }

    /// Appends what the peer sent, decrypted. What came before the end or a failure can still be taken.
    public func takePlaintext(into bytes: inout [UInt8]) {
        if bytes.isEmpty {
            swap(&bytes, &plaintext)
        } else {
            bytes += plaintext
        }
        plaintext.removeAll(keepingCapacity: plaintext.capacity <= Self.pieceLength)
    }

    /// Ends the session: close_notify waits for the peer if the session was open.
    public func close() {
        guard isAlive else { return }
        let wasOpen = state == .open
        state = .closed
        early = []
        if wasOpen { unsafe _ = SSL_shutdown(ssl.pointer) }
    }

    private var isAlive: Bool { state == .handshaking || state == .open }

    // MARK: Driving OpenSSL

    private func advance() {
        if state == .handshaking { shakeHands() }
        if state == .open { read() }
        // A peer can make this side write without reading itself (KeyUpdate, RFC 8446 §4.6.3).
        if isAlive, unsafe BIO_ctrl_pending(output.pointer) > Self.backlogLimit { fail(.backlog) }
    }

    private func shakeHands() {
        let outcome = attempt { unsafe SSL_do_handshake(ssl.pointer) }
        switch outcome {
        case .done: break
        case .wantsMore: return
        case .closed: return close()
        case .failed(let error): return fail(refusal ?? explained(error))
        }
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
                unsafe SSL_read_ex(ssl.pointer, buffer.bytes.baseAddress, buffer.bytes.count, &count)
            }
            switch outcome {
            case .done:
                awaitsAcceptance = false
                unsafe plaintext.append(contentsOf: buffer.bytes[..<count])
                if plaintext.count > Self.backlogLimit { fail(.backlog) }
                // To be told that nothing is left costs a quarter of what the reading did.
                if unsafe BIO_ctrl_pending(input.pointer) == 0 && SSL_has_pending(ssl.pointer) == 0 { return }
            case .wantsMore: return
            case .closed: close()
            case .failed(let error): fail(explained(error))
            }
        }
    }

    /// An alert that comes between a server's question for a certificate and its first data is most likely about that.
    private func explained(_ error: TLSError) -> TLSError {
        guard awaitsAcceptance, let client, case .alert(let code) = error, TLSError.isAboutCertificate(alert: code)
        else { return error }
        return client.hasCertificate ? .clientCertificateRefused(alert: code) : .clientCertificateWanted(alert: code)
    }

    private func write(_ bytes: Span<UInt8>) {
        guard unsafe BIO_ctrl_pending(output.pointer) + bytes.count <= Self.backlogLimit else { return fail(.backlog) }
        let outcome = unsafe bytes.withUnsafeBufferPointer { bytes in
            var count = 0
            return attempt { unsafe SSL_write_ex(ssl.pointer, bytes.baseAddress, bytes.count, &count) }
        }
        switch outcome {
        case .done: break
        case .closed: close()
        // A memory BIO takes everything, so there is nothing to wait for.
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
        // What the peer fails on may be the session that was offered: begin afresh next time.
        if let client { client.memory.forget(client.target) }
    }
}
