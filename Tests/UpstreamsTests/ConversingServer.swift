import Base
import Cryptography
import Foundation
import ShellTestSupport
import Synchronization

/// A server on loopback that keeps its connections, plain or through TLS: the next request, on whatever connection it
/// comes, gets the next of its responses.
final class ConversingServer: Sendable {
    /// What becomes of a connection behind a response.
    enum End: Sendable {
        case none
        /// Closed as TCP closes, without a word of TLS: anybody on the path could have done it.
        case cut
        /// close_notify first, where there is TLS.
        case goodbye
    }

    struct Response: Sendable {
        let text: String
        /// Sent some time behind it, when ``strayIsSent()`` wants it.
        let stray: String?
        let end: End

        init(_ text: String, stray: String? = nil, then end: End = .none) {
            (self.text, self.stray, self.end) = (text, stray, end)
        }
    }

    let endpoint: Endpoint
    /// PEM of what it shows to clients; nil without TLS.
    let certificate: [UInt8]?
    private let listener: Int32
    private let state: Mutex<State>
    private let wanted = Gate()
    private let sent = Gate()

    private struct State {
        var responses: [Response]
        /// Which connection each request came on, counted from 1.
        var connections: [Int] = []
    }

    var connections: [Int] { state.withLock { $0.connections } }

    init(_ responses: [Response], isSecure: Bool = false) throws {
        (listener, endpoint) = try listeningSocket()
        state = Mutex(State(responses: responses))
        let material =
            try isSecure ? SelfSignedCertificate.make(names: [], addresses: [endpoint.address], days: 1) : nil
        certificate = material?.certificatePEM
        Thread.detachNewThread { [weak self, listener] in
            var number = 0
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { return }
                number += 1
                let connection = Connection(descriptor: descriptor, number: number)
                Thread.detachNewThread { [weak self] in self?.serve(connection, material) }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    /// Has the stray bytes sent and returns when they are in the client's socket.
    func strayIsSent() {
        wanted.open()
        _ = sent.wait()
    }

    private struct Connection: Sendable {
        let descriptor: Int32
        let number: Int
    }

    private func serve(_ connection: Connection, _ material: (certificatePEM: [UInt8], keyPEM: [UInt8])?) {
        defer { close(connection.descriptor) }
        let stream = ServerStream(
            connection.descriptor,
            try? material.map {
                try TLSServerContext(certificatePEM: $0.certificatePEM, keyPEM: $0.keyPEM).session()
            })
        while stream.readRequest() {
            let response: Response? = state.withLock { state in
                guard !state.responses.isEmpty else { return nil }
                state.connections.append(connection.number)
                return state.responses.removeFirst()
            }
            guard let response else { return }
            stream.send(response.text)
            if let stray = response.stray {
                guard wanted.wait() else { return }
                stream.send(stray)
                sent.open()
            }
            switch response.end {
            case .none: continue
            case .goodbye: stream.sayGoodbye()
            case .cut: break
            }
            return
        }
    }
}

/// The server's side of one connection; of one thread.
private final class ServerStream {
    private let descriptor: Int32
    private let session: TLSSession?

    init(_ descriptor: Int32, _ session: TLSSession?) {
        (self.descriptor, self.session) = (descriptor, session)
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        // What is sent is in the client's socket at once, not when that has acknowledged what came before.
        var isAtOnce: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isAtOnce, socklen_t(MemoryLayout<Int32>.size))
    }

    /// False at the end of the connection.
    func readRequest() -> Bool {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while !String(decoding: text, as: UTF8.self).hasSuffix("\r\n\r\n") {
            flush()
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return false }
            if let session {
                session.receive(buffer.span.extracting(first: count))
                session.takePlaintext(into: &text)
            } else {
                text += buffer[..<count]
            }
        }
        return true
    }

    func send(_ text: String) {
        let bytes = Array(text.utf8)
        if let session { session.send(bytes.span) } else { write(bytes) }
        flush()
    }

    func sayGoodbye() {
        session?.close()
        flush()
    }

    private func flush() {
        var ciphertext: [UInt8] = []
        session?.takeCiphertext(into: &ciphertext)
        write(ciphertext)
    }

    private func write(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        _ = Foundation.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
}
