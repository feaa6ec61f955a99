import Base

/// A server's side of one HTTP/2 connection (RFC 9113), for clients that may be hostile. The limits of a client's
/// actions before an answer is passed on:
///
/// | the client | consequence |
/// | --- | --- |
/// | has more than ``streamLimit`` requests open or cancelled | the next is refused, the connection goes on |
/// | has confirmed that limit, and opens more | the library ends the connection with PROTOCOL_ERROR |
/// | cancels requests at once (rapid reset) | a request that is cancelled before it is taken leaves nothing; a flood |
/// | sends PING, SETTINGS, PRIORITY, empty DATA without end | a flood |
/// | sends CONTINUATION without end, or a head longer than its limit | a flood; the stream is reset, the rest is ignored |
/// | sends a body longer than its limit | 413, and the rest of the body is not taken |
/// | sends many heads or bodies and ends none | no more than ``heldLimit`` octets are stored; beyond them 413 |
/// | gives no room for answers (windows of 0) | its requests stay open, and there are no more than ``streamLimit`` of them |
///
/// A flood is more than ``frameLimit`` frames between two complete answers with a body. A flood ends the connection
/// with ENHANCE_YOUR_CALM. A refused request has no body.
package final class HTTP2Server: HTTP2Owner, HTTPServer {
    /// The most requests that are read or answered at a time.
    package static let streamLimit = 100
    /// The most frames between two complete answers with a body.
    package static let frameLimit = 1000
    /// The most stored octets of requests.
    package static let heldLimit = 256 * 1024
    /// Octets of output above which no more output is made until some octets were taken.
    private static let backlogLimit = 64 * 1024

    private let library: HTTP2Library
    /// The longest body of a request, in octets.
    private let bodyLimit: Int
    /// The open exchanges, which are few enough for a search.
    private var exchanges: [Exchange] = []
    /// The requests to pass on to the owner, in order.
    private var ready: [Exchange] = []
    /// Streams that are answered although the client has not sent its whole request.
    private var unwanted: [Int32] = []
    /// The stream that was refused last, whose fields are ignored.
    private var refused: Int32 = 0
    /// Memory for the heads of answers.
    private var head = HTTP2Head()
    package private(set) var held = 0
    package private(set) var unsent = 0
    private var hasFailed = false
    /// Whether the end of the connection is announced to the client.
    private var isEnding = false

    /// A request, and the rest of its answer.
    fileprivate final class Exchange {
        var request: HTTPServerRequest
        /// The size of the head by RFC 9113 §6.5.2.
        var headLength = 0
        /// Whether the client has sent the whole request.
        var isWhole = false
        /// Whether the request is, or was, among the requests to pass on.
        var isReady = false
        var answer: ArraySlice<UInt8>?

        /// Stored octets of the request.
        var kept: Int { request.path.count + request.contentType.count + request.body.count }

        init(_ stream: Int32) { request = HTTPServerRequest(stream: stream) }
    }

    /// - Throws: ``HTTP2Error/library(code:)`` if there is no memory.
    package init(bodyLimit: Int) throws(HTTP2Error) {
        library = try HTTP2Library(.server)
        self.bodyLimit = bodyLimit
        super.init(frameLimit: Self.frameLimit)
        try library.start(for: self)
    }

    package var isFinished: Bool { hasFailed || library.isFinished }
    package var hasRequest: Bool { !ready.isEmpty }
    package var mostAtOnce: Int { Self.streamLimit }
    package var mustListen: Bool { true }

    package func receive(_ bytes: Span<UInt8>) {
        guard !isFinished, !isEnding else { return }
        do throws(HTTP2Error) {
            try library.receive(bytes)
        } catch {
            (ready, isEnding) = ([], true)
            if error == .flood { library.terminate(.enhanceYourCalm) } else { hasFailed = true }
        }
    }

    package func nextRequest() -> HTTPServerRequest? {
        guard !ready.isEmpty else { return nil }
        let exchange = ready.removeFirst()
        held -= exchange.kept
        let stream = exchange.request.stream
        return Swift.exchange(&exchange.request, with: HTTPServerRequest(stream: stream))
    }

    package func answer(_ stream: Int32, _ answer: HTTPAnswer) {
        guard !hasFailed, let exchange = find(stream), exchange.answer == nil else { return }
        exchange.answer = answer.body[...]
        unsent += answer.body.count
        head.begin(answer)
        library.respond(on: stream, head, hasBody: !answer.body.isEmpty)
        if !exchange.isWhole { unwanted.append(stream) }
    }

    package func announceEnd() {
        guard !isFinished, !isEnding else { return }
        library.goAway()
    }

    package func takeOutput() -> [UInt8] {
        var output: [UInt8] = []
        do throws(HTTP2Error) {
            try send(into: &output)
            // The answers are sent, and the rest of their requests is not needed (RFC 9113 §8.1).
            if !unwanted.isEmpty, output.count < Self.backlogLimit {
                for stream in Swift.exchange(&unwanted, with: []) { library.reset(stream, .noError) }
                try send(into: &output)
            }
        } catch {
            hasFailed = true
        }
        return output
    }

    private func send(into output: inout [UInt8]) throws(HTTP2Error) {
        while !hasFailed, output.count < Self.backlogLimit, try library.send(into: &output) {}
    }

    // MARK: Callbacks of the library

    private func find(_ stream: Int32) -> Exchange? { exchanges.last { $0.request.stream == stream } }

    /// Trailers are ignored.
    override func beganHead(_ stream: Int32) {
        guard find(stream) == nil else { return }
        guard exchanges.count < Self.streamLimit else {
            refused = stream
            return library.reset(stream, .refusedStream)
        }
        exchanges.append(Exchange(stream))
    }

    override func receive(_ stream: Int32, field name: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
        guard stream != refused, let exchange = find(stream) else { return false }
        held += exchange.receive(field: name, value)
        guard exchange.headLength <= HTTPResponseReader.headLimit else {
            library.reset(stream, .enhanceYourCalm)
            return false
        }
        if held > Self.heldLimit { refuse(exchange, .contentTooLarge) }
        return true
    }

    override func receive(_ stream: Int32, body bytes: Span<UInt8>) {
        guard let exchange = find(stream), !exchange.isReady else { return }
        guard exchange.request.body.count + bytes.count <= bodyLimit, held + bytes.count <= Self.heldLimit else {
            return refuse(exchange, .contentTooLarge)
        }
        held += bytes.count
        exchange.request.body.append(bytes)
    }

    override func completed(_ stream: Int32) {
        guard let exchange = find(stream) else { return }
        exchange.isWhole = true
        giveOut(exchange)
    }

    override func closed(_ stream: Int32, _ code: HTTP2Code) {
        guard let exchange = find(stream) else { return }
        held -= exchange.kept
        unsent -= exchange.answer?.count ?? 0
        if let index = exchanges.firstIndex(where: { $0 === exchange }) { exchanges.remove(at: index) }
        if let index = ready.firstIndex(where: { $0 === exchange }) { ready.remove(at: index) }
    }

    override func nextPart(of stream: Int32, _ limit: Int) -> (ArraySlice<UInt8>, isLast: Bool) {
        guard let exchange = find(stream), let body = exchange.answer else { return ([], true) }
        let part = body.prefix(limit)
        exchange.answer = body.dropFirst(limit)
        unsent -= part.count
        if part.count == body.count { frames = 0 }
        return (part, part.count == body.count)
    }

    private func giveOut(_ exchange: Exchange) {
        guard !exchange.isReady else { return }
        exchange.isReady = true
        ready.append(exchange)
    }

    private func refuse(_ exchange: Exchange, _ status: HTTPStatus) {
        guard !exchange.isReady else { return }
        held -= exchange.kept
        exchange.request = HTTPServerRequest(refused: status, stream: exchange.request.stream)
        giveOut(exchange)
    }
}

extension HTTP2Server.Exchange {
    /// Names of fields are in lower case (RFC 9113 §8.2.1), which the library has checked.
    /// - Returns: The number of newly stored octets.
    fileprivate func receive(field name: Span<UInt8>, _ value: Span<UInt8>) -> Int {
        headLength += name.count + value.count + 32
        guard !isReady else { return 0 }
        if isSame(name, name.indices, as: ":method") {
            request.method = HTTPMethod(value)
        } else if isSame(name, name.indices, as: ":path") {
            request.path.append(value)
            return value.count
        } else if isSame(name, name.indices, as: "content-type") {
            let before = request.contentType.count
            request.contentType = []
            request.contentType.append(value)
            return value.count - before
        }
        return 0
    }
}
