import Base
import Cryptography
import Foundation
import ShellTestSupport
import Synchronization

/// A DNS server on streams, on loopback, plain or through TLS: a script handles each connection, on a thread of its
/// own.
final class FramesServer: Sendable {
    let endpoint: Endpoint
    /// The accepted connections in order; each with the protocol that ALPN has chosen, once it is known.
    let connections = Arrivals<Int>()
    private let listener: ServerSocket

    /// - Parameters:
    ///   - address: last octet of the address in 127.0.0.0/8.
    ///   - port: 0: any.
    ///   - script: Handles a connection, given its number from 1; the connection is closed at the end of the script.
    init(
        _ address: UInt8 = 1, port: UInt16 = 0, tls: TLSServerSettings? = nil,
        _ script: @escaping @Sendable (Int, FramesConnection) -> Void
    ) throws {
        let (descriptor, endpoint) = try listeningSocket(octet: address, port: port)
        (listener, self.endpoint) = (ServerSocket(descriptor), endpoint)
        Thread.detachNewThread { [connections, listener] in
            var number = 0
            while let descriptor = listener.accept() {
                number += 1
                connections.append(number)
                let accepted = number
                Thread.detachNewThread {
                    let session = try? tls.map { try $0.session() }
                    let connection = FramesConnection(descriptor, session)
                    script(accepted, connection)
                    connection.close()
                }
            }
        }
    }

    deinit { listener.end() }
}

/// A certificate and the protocols that are served with it.
struct TLSServerSettings: Sendable {
    let certificate: [UInt8]
    let key: [UInt8]
    var protocols = ["dot"]
    var refusesOthers = false

    init(names: [String] = [], addresses: [IPAddress] = []) throws {
        (certificate, key) = try SelfSignedCertificate.make(names: names, addresses: addresses, days: 1)
    }

    func session() throws -> TLSSession {
        try TLSServerContext(
            certificatePEM: certificate, keyPEM: key, protocols: protocols, refusesOthers: refusesOthers
        ).session()
    }
}

/// The server's side of one connection; used on one thread.
final class FramesConnection {
    private let descriptor: Int32
    private var isClosed = false
    private let session: TLSSession?
    /// Received octets, decrypted, that no query has taken yet.
    var incoming: [UInt8] = []
    /// The number of reads.
    private(set) var reads = 0

    init(_ descriptor: Int32, _ session: TLSSession?) {
        (self.descriptor, self.session) = (descriptor, session)
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        // Sent octets reach the client's socket at once, without waiting for the acknowledgement of earlier ones.
        var isAtOnce: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isAtOnce, socklen_t(MemoryLayout<Int32>.size))
    }

    var applicationProtocol: String? { session?.applicationProtocol }

    /// The next query; nil at the end of the connection.
    func query() -> [UInt8]? {
        while true {
            if incoming.count >= 2 {
                let end = 2 + Int(incoming[0]) << 8 + Int(incoming[1])
                if incoming.count >= end {
                    defer { incoming.removeFirst(end) }
                    return Array(incoming[2..<end])
                }
            }
            guard receive() else { return nil }
        }
    }

    /// Waits for octets and appends them to ``incoming``; false at the end of the connection.
    func receive() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        flush()
        var count: Int
        // With a time limit, the call ends with EINTR when the process was stopped meanwhile.
        repeat { count = recv(descriptor, &buffer, buffer.count, 0) } while count < 0 && errno == EINTR
        guard count > 0 else { return false }
        reads += 1
        if let session {
            session.receive(buffer.span.extracting(first: count))
            session.takePlaintext(into: &incoming)
        } else {
            incoming += buffer[..<count]
        }
        return true
    }

    func send(_ bytes: [UInt8]) {
        if let session { session.send(bytes.span) } else { write(bytes) }
        flush()
    }

    func answer(_ message: [UInt8]) { send(framed(message)) }

    func sayGoodbye() {
        session?.close()
        flush()
    }

    func resetsAtClose() {
        var now = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
    }

    /// From now on, octets wait until the client has acknowledged earlier ones (RFC 896), as with most servers.
    func gathersOctets() {
        var isAtOnce: Int32 = 0
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isAtOnce, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Waits for octets, and drops them.
    func dropsOctets() {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        _ = recv(descriptor, &buffer, buffer.count, 0)
    }

    /// The second call does nothing: the descriptor may belong to another socket by then.
    func close() {
        if !isClosed { Foundation.close(descriptor) }
        isClosed = true
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

func framed(_ message: [UInt8]) -> [UInt8] { [UInt8(message.count >> 8), UInt8(message.count & 0xFF)] + message }

/// The query's question with one address, which its name's first label gives: `www.7.example` has 192.0.2.7.
func answer(to query: [UInt8], code: UInt8 = 0) -> [UInt8] {
    let digits = query[13..<(13 + Int(query[12]))].drop { $0 > UInt8(ascii: "9") }
    let number = UInt8(String(decoding: digits, as: UTF8.self)) ?? 0
    return answer(to: query, addresses: code == 0 ? [.v4(192, 0, 2, number)] : [], code: code)
}
