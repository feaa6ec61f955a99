import Base

/// A server's side of one HTTP/2 connection (RFC 9113), for clients that may be hostile. What each of them can make it do
/// without an answer being given out:
///
/// | the client | what happens |
/// | --- | --- |
/// | has more than ``streamLimit`` requests open | the next is refused, the connection goes on |
/// | cancels requests at once (rapid reset) | a request that is cancelled before it is taken leaves nothing; a flood |
/// | sends PING, SETTINGS, PRIORITY, empty DATA without end | a flood |
/// | sends CONTINUATION without end, or a head longer than its limit | a flood; 400 |
/// | sends a body longer than its limit | 413, and the rest of the body is not taken |
/// | sends many bodies and ends none | no more than ``heldLimit`` octets are kept; beyond them 413 |
/// | gives no room for answers (windows of 0) | its requests stay open, and there are no more than ``streamLimit`` of them |
///
/// A flood is more than ``frameLimit`` frames from one answer that was given out whole to the next: it ends the connection with
/// ENHANCE_YOUR_CALM.
package final class HTTP2Server: HTTP2Owner, HTTPServer {
    /// The most requests that are read or answered at a time.
    package static let streamLimit = 100
    /// The most frames from one whole answer to the next.
    package static let frameLimit = 1000
    /// The most octets of requests that are kept.
    package static let heldLimit = 256 * 1024
    /// Octets of output above which no more is produced until some were taken.
    private static let backlogLimit = 64 * 1024

    private let library: HTTP2Library
    /// The longest body of a request, in octets.
    private let bodyLimit: Int
    private var exchanges: [Int32: Exchange] = [:]
    /// The streams of the requests to be given out, in their order.
    private var ready: [Int32] = []
    /// Streams that are answered though the client has not sent all of its request.
    private var unwanted: [Int32] = []
    package private(set) var held = 0
    package private(set) var unsent = 0
    private var hasFailed = false
    /// Whether the client is told that the connection ends.
    private var isEnding = false

    /// A request, and what is still to be sent of its answer.
    fileprivate struct Exchange {
        var request: HTTPServerRequest
        /// The size of the head as RFC 9113 §6.5.2 counts it, and the octets of the body.
        var headLength = 0
        /// Whether the client has sent all of it.
        var isWhole = false
        /// Whether it is among those to be given out, or was.
        var isReady = false
        var answer: ArraySlice<UInt8>?
    }

    /// - Throws: ``HTTP2Error/library(code:)`` when there is no memory.
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
        guard !ready.isEmpty, let request = exchanges[ready.removeFirst()]?.request else { return nil }
        held -= request.body.count
        exchanges[request.stream]?.request.body = []
        return request
    }

    package func answer(_ stream: Int32, _ answer: HTTPAnswer) {
        guard !hasFailed, let exchange = exchanges[stream], exchange.answer == nil else { return }
        exchanges[stream]?.answer = answer.body[...]
        unsent += answer.body.count
        let head = HTTP2Head([(":status", "\(answer.status.rawValue)")] + answer.fields)
        library.respond(on: stream, head, length: answer.body.count)
        if answer.body.isEmpty { frames = 0 }
        if !exchange.isWhole { unwanted.append(stream) }
    }

    package func takeOutput() -> [UInt8] {
        var output: [UInt8] = []
        do throws(HTTP2Error) {
            try send(into: &output)
            // The answers are given out, and the rest of their requests is not wanted (RFC 9113 §8.1).
            if !unwanted.isEmpty, output.count < Self.backlogLimit {
                for stream in exchange(&unwanted, with: []) { library.reset(stream, .noError) }
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

    // MARK: What the library tells, while it reads or writes

    /// Trailers are ignored.
    override func beganHead(_ stream: Int32) {
        guard exchanges[stream] == nil else { return }
        guard exchanges.count < Self.streamLimit else { return library.reset(stream, .refusedStream) }
        exchanges[stream] = Exchange(request: HTTPServerRequest(stream: stream))
    }

    override func receive(_ stream: Int32, field name: Span<UInt8>, _ value: Span<UInt8>) {
        exchanges[stream]?.receive(field: name, value)
        if exchanges[stream]?.headLength ?? 0 > HTTPResponseReader.headLimit { refuse(stream, .badRequest) }
    }

    override func receive(_ stream: Int32, body bytes: Span<UInt8>) {
        guard let exchange = exchanges[stream], !exchange.isReady else { return }
        guard exchange.request.body.count + bytes.count <= bodyLimit, held + bytes.count <= Self.heldLimit else {
            return refuse(stream, .contentTooLarge)
        }
        held += bytes.count
        exchanges[stream]?.request.body.append(bytes)
    }

    override func completed(_ stream: Int32) {
        exchanges[stream]?.isWhole = true
        giveOut(stream)
    }

    override func closed(_ stream: Int32, _ code: HTTP2Code) {
        guard let exchange = exchanges.removeValue(forKey: stream) else { return }
        held -= exchange.request.body.count
        unsent -= exchange.answer?.count ?? 0
        if exchange.isReady, let place = ready.firstIndex(of: stream) { ready.remove(at: place) }
    }

    override func nextPart(of stream: Int32, _ limit: Int) -> (ArraySlice<UInt8>, isLast: Bool) {
        guard let body = exchanges[stream]?.answer else { return ([], true) }
        let part = body.prefix(limit)
        exchanges[stream]?.answer = body.dropFirst(limit)
        unsent -= part.count
        if part.count == body.count { frames = 0 }
        return (part, part.count == body.count)
    }

    private func giveOut(_ stream: Int32) {
        guard exchanges[stream]?.isReady == false else { return }
        exchanges[stream]?.isReady = true
        ready.append(stream)
    }

    private func refuse(_ stream: Int32, _ status: HTTPStatus) {
        guard let exchange = exchanges[stream], !exchange.isReady else { return }
        held -= exchange.request.body.count
        exchanges[stream]?.request = HTTPServerRequest(refused: status, stream: stream)
        giveOut(stream)
    }
}

extension HTTP2Server.Exchange {
    fileprivate mutating func receive(field name: Span<UInt8>, _ value: Span<UInt8>) {
        headLength += name.count + value.count + 32
        guard !isReady else { return }
        if isEqual(name, name.indices, to: ":method") {
            request.method = HTTPMethod(value)
        } else if isEqual(name, name.indices, to: ":path") {
            request.path = value.indices.map { value[$0] }
        } else if isEqual(name, name.indices, to: "content-type") {
            request.contentType = value.indices.map { value[$0] }
        }
    }
}
