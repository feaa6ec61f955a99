import HTTP
import Streams
import Transport

/// One client of the control server, with one request and one response. Confined to the server's loop.
final class ControlConnection: @unchecked Sendable {
    // Unchecked: other queues only return a reference to the loop.
    private unowned let server: ControlServer
    /// Whether the connection came over the unix socket, which only operators can use.
    let isOperator: Bool
    let begun = Clock.now()
    private var link: StreamLink!
    private var output: RawConversation!
    private var reader = HTTPRequestReader(headLimit: headLimit, pipelineLimit: headLimit)
    private var current = Phase.reading
    private var isHead = false

    /// The longest head of a request, in octets. The longest name takes 1 KiB of the head.
    private static let headLimit = 8 * 1024
    /// The most octets that wait for a watcher to read: over a thousand lines. With more, it would see only old lines.
    static let watchLimit = 256 * 1024

    /// The longest time from accept to close, in nanoseconds, and the longest to an answer: lists of names may take
    /// long to reload, and the cache's file long to write.
    private static let longestConnection: UInt64 = 10_000_000_000
    static let longestAnswering: UInt64 = 60_000_000_000

    enum Phase {
        /// The client has not sent a whole request.
        case reading
        case answering, writing
        /// The response goes on until the client closes.
        case watching
        /// The response is written, and the client has yet to close.
        case ending
    }

    /// The time at which the connection is closed, whatever its client does; nil: never.
    var end: UInt64? {
        switch phase {
        case .watching: nil
        case .answering: begun + Self.longestAnswering
        case .reading, .writing, .ending: begun + Self.longestConnection
        }
    }

    var phase: Phase { current == .writing && link.queued == 0 ? .ending : current }

    init(_ socket: consuming StreamSocket, isOperator: Bool, server: ControlServer) throws(SystemError) {
        self.isOperator = isOperator
        self.server = server
        output = RawConversation(owner: self)
        link = StreamLink(server: output, owner: self)
        // No limit is needed: a response is as long as the settings make it, and there are few connections. For a
        // response that goes on, see `room`.
        link.begin(
            try Stream(
                socket, isConnected: true, tls: nil, limit: .max, scratch: server.scratch, loop: server.loop,
                owner: link))
    }

    /// Reads the waiting octets without waiting for the loop's event.
    func read() { link.read() }

    func close() {
        link.close()
        server.remove(self)
    }

    /// The number of further octets that may wait for a watcher to read.
    var room: Int { max(0, Self.watchLimit - link.queued) }

    /// Sends more of a continuing response.
    func sendLines(_ lines: Span<UInt8>) {
        output.add(lines)
        link.flush()
    }

    private func send(_ response: ControlResponse) {
        guard !link.isClosed else { return }
        output.add(response.head.span)
        if let watch = response.watch, !isHead {
            current = .watching
            link.isReading = true
            link.flush()
            // The send may have found the connection broken.
            if !link.isClosed { server.watchers.add(self, watch.filter, watch.form, at: Clock.now()) }
            return
        }
        current = .writing
        link.isReading = false
        if !isHead { output.add(response.body.span) }
        link.finish()
    }
}

extension ControlConnection: RawOwner, LinkOwner {
    func received(_ bytes: Span<UInt8>) {
        guard current == .reading else { return }
        do throws(MalformedRequest) {
            try reader.receive(bytes)
            guard let request = try reader.next() else { return }
            current = .answering
            isHead = request.method == .head
            link.isReading = false
            server.answer(request, isOperator: isOperator) { [self] in send($0) }
        } catch {
            send(ControlResponse(.badRequest, "The request cannot be understood.\n"))
        }
    }

    func happened(_ event: ConversationEvent, on link: StreamLink) {}

    func ended(_ link: StreamLink, _ end: LinkEnd) { server.remove(self) }
}

/// A response of the control server.
struct ControlResponse: Sendable {
    let status: HTTPStatus
    let type: String
    let body: [UInt8]
    /// Further header fields, each with its line end.
    var fields = ""
    /// The filter and form of the questions in a response that continues until the client closes. Nil for a response
    /// that ends with ``body``.
    var watch: (filter: WatchFilter, form: WatchText.Form)?

    init(_ status: HTTPStatus, _ text: String, type: String = "text/plain; charset=utf-8") {
        (self.status, self.type) = (status, type)
        body = Array(text.utf8)
    }

    var head: [UInt8] {
        Array(
            """
            HTTP/1.1 \(status.line)\r
            Date: \(String(decoding: HTTPDate.text(WallClock.unixSeconds()), as: UTF8.self))\r
            Content-Type: \(type)\r
            \(watch == nil ? "Content-Length: \(body.count)\r\n" : "")\
            Cache-Control: no-store\r
            X-Content-Type-Options: nosniff\r
            \(fields)Connection: close\r
            \r

            """.utf8)
    }
}
