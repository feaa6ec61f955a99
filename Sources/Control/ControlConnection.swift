import HTTP
import Transport

/// One client of the control server: one request, one response. Confined to the server's loop.
final class ControlConnection: EventHandler, @unchecked Sendable {
    // Unchecked: what is sent to other queues is only brought back from there.
    private unowned let server: ControlServer
    /// It came over the unix socket: an operator.
    let isOperator: Bool
    let begun = Clock.now()
    private var socket: StreamSocket
    private var registration: Registration?
    private var reader = HTTPRequestReader(headLimit: headLimit, pipelineLimit: headLimit)
    private var outgoing = StreamBuffer(limit: responseLimit)
    private(set) var phase = Phase.reading
    private var isHead = false
    /// Octets thrown away since the response was sent.
    private var discarded = 0

    /// Octets of a request's head: the longest name there is takes 1 KiB in it.
    private static let headLimit = 8 * 1024
    /// The metrics of a hundred servers take half of it.
    private static let responseLimit = 1 << 20

    enum Phase {
        /// It has not sent a whole request.
        case reading
        case answering, writing
        /// All is written; what the client still sends is thrown away until it closes, since closing first could take the
        /// response back from it (RFC 9112 §9.6).
        case ending
    }

    init(_ socket: consuming StreamSocket, isOperator: Bool, server: ControlServer) throws(SystemError) {
        self.socket = socket
        self.isOperator = isOperator
        self.server = server
        registration = try server.loop.register(self.socket.descriptor, .readable, self)
    }

    func ready(_ readiness: Readiness) {
        do throws(SystemError) {
            if readiness.contains(.readable) { try read() }
            if readiness.contains(.writable) { try write() }
        } catch {
            close()
        }
    }

    func close() {
        guard let registration else { return }
        self.registration = nil
        server.loop.unregister(registration)
        socket.close()
        server.remove(self)
    }

    private func read() throws(SystemError) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var room = buffer.mutableSpan
        switch try socket.receive(into: &room) {
        case .wouldBlock: return
        case .endOfStream: return close()
        case .bytes(let count):
            guard phase != .ending else {
                discarded += count
                if discarded > Self.headLimit { close() }
                return
            }
            take(buffer.span.extracting(0..<count))
        }
    }

    private func take(_ bytes: Span<UInt8>) {
        do throws(MalformedRequest) {
            try reader.receive(bytes)
            guard let request = try reader.next() else { return }
            phase = .answering
            isHead = request.method == .head
            if let registration { server.loop.update(registration, []) }
            server.answer(request, isOperator: isOperator) { [self] in send($0) }
        } catch {
            send(ControlResponse(.badRequest, "The request cannot be understood.\n"))
        }
    }

    private func send(_ response: ControlResponse) {
        guard registration != nil else { return }
        phase = .writing
        // What is longer than the limit is cut off: the length that was promised shows it.
        guard outgoing.append(response.head.span), isHead || outgoing.append(response.body.span) else { return close() }
        do throws(SystemError) { try write() } catch { close() }
    }

    private func write() throws(SystemError) {
        guard phase == .writing, let registration else { return }
        if try outgoing.flush(to: socket) {
            phase = .ending
            socket.shutdownSending()
            server.loop.update(registration, .readable)
        } else {
            server.loop.update(registration, .writable)
        }
    }
}

/// What a client of the control server is told.
struct ControlResponse: Sendable {
    enum Status: Int, Sendable {
        case ok = 200
        case badRequest = 400
        case notFound = 404
        case methodNotAllowed = 405
        case misdirected = 421
        case unavailable = 503

        fileprivate var reason: String {
            switch self {
            case .ok: "OK"
            case .badRequest: "Bad Request"
            case .notFound: "Not Found"
            case .methodNotAllowed: "Method Not Allowed"
            case .misdirected: "Misdirected Request"
            case .unavailable: "Service Unavailable"
            }
        }
    }

    let status: Status
    let type: String
    let body: [UInt8]
    /// More fields of the head, each with its line end.
    var fields = ""

    init(_ status: Status, _ text: String, type: String = "text/plain; charset=utf-8") {
        (self.status, self.type) = (status, type)
        body = Array(text.utf8)
    }

    var head: [UInt8] {
        Array(
            """
            HTTP/1.1 \(status.rawValue) \(status.reason)\r
            Content-Type: \(type)\r
            Content-Length: \(body.count)\r
            Cache-Control: no-store\r
            X-Content-Type-Options: nosniff\r
            \(fields)Connection: close\r
            \r

            """.utf8)
    }
}
