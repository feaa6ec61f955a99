import Base

/// An event of one request or of the connection.
package enum HTTP2Event: Equatable, Sendable {
    case answered(UInt64, HTTPResponse)
    case failed(UInt64, HTTP2Failure)
    /// The server takes no more requests (GOAWAY). Requests that are not reported as failed may still be answered. Any
    /// code but NO_ERROR is an error.
    case goingAway(HTTP2Code)
    /// The connection has ended. Each request had its answer or failure before.
    case ended(HTTP2Error)
}

/// A client's side of one HTTP/2 connection (RFC 9113) as bytes in and bytes out. The session owns no socket and no
/// clock, and is confined to its owner.
///
/// After each call, take the output and the events until there are none left. Each request that was opened and not
/// cancelled gets exactly one of ``HTTP2Event/answered(_:_:)`` and ``HTTP2Event/failed(_:_:)``.
package final class HTTP2Session: HTTP2Owner {
    /// The most requests at a time, even if the server allows more requests.
    package static let requestLimit = 512
    /// The most requests before the server has announced its limit (RFC 9113 §6.5.2 advises a hundred).
    package static let assumedLimit = 100
    /// The most fields of one head. Their size is limited by ``HTTPResponseReader/headLimit``.
    package static let fieldLimit = 64
    /// The most frames between two answers. A body of 64 KiB takes five; an idle server sends a PING now and then.
    package static let frameLimit = 10_000
    /// Octets of output above which no more output is made until some octets were taken. Meanwhile
    /// ``HTTP2Library/acknowledgementLimit`` limits the number of waiting acknowledgements.
    package static let backlogLimit = 64 * 1024

    /// The most cancelled requests whose streams are left to end by themselves.
    package static let abandonedLimit = 64

    private let library: HTTP2Library
    /// The longest body of a response, in octets.
    private let bodyLimit: Int
    /// The open requests, ordered by stream.
    private var exchanges: [HTTP2Exchange] = []
    /// The number of abandoned exchanges.
    private var abandoned = 0
    private var output: [UInt8] = []
    private var events: [HTTP2Event] = []
    private var hasStarted = false
    private var isGoingAway = false
    private var hasEnded = false

    /// Begins a connection. The first flight is ready to be taken, and requests may join it.
    /// - Parameter bodyLimit: The longest body of a response, in octets. A longer body fails only its request.
    /// - Throws: ``HTTP2Error/library(code:)`` if there is no memory.
    package init(bodyLimit: Int) throws(HTTP2Error) {
        library = try HTTP2Library(.client)
        self.bodyLimit = bodyLimit
        super.init(frameLimit: Self.frameLimit)
        try library.start(for: self)
        pump()
    }

    // MARK: Requests

    /// The number of further requests that are taken now.
    package var room: Int {
        guard !hasEnded, output.count < Self.backlogLimit, library.takesRequests else { return 0 }
        return max(0, mostAtOnce - exchanges.count + abandoned)
    }

    /// Whether the connection may take more requests later; false: it has ended, or the server has sent GOAWAY.
    package var mayTakeMore: Bool { !isGoingAway && !hasEnded }

    /// Whether no request is open.
    package var isIdle: Bool { exchanges.count == abandoned }

    /// The most requests that may be open at once, as far as the server has announced its limit.
    package var mostAtOnce: Int { min(Self.requestLimit, library.streamLimit) }

    /// - Parameter id: The ID that the owner chose. No other open request may have the same ID.
    /// - Returns: False if there is no ``room``.
    package func open(_ request: HTTP2Request, as id: UInt64) -> Bool {
        guard room > 0 else { return false }
        if exchanges.count >= mostAtOnce { resetOldestAbandoned() }
        guard let stream = library.submit(request) else { return false }
        exchanges.append(HTTP2Exchange(id: id, stream: stream, request: request.body, bodyLimit: bodyLimit))
        pump()
        return true
    }

    /// Cancels a request, which no event reports any more. The connection goes on.
    ///
    /// The request's stream waits for its response, since servers regard many resets as an attack (CVE-2023-44487). The
    /// stream is reset when another request needs the room, or when more than ``abandonedLimit`` such streams wait.
    /// - Returns: False if the request was not open, because its answer or failure had been reported.
    @discardableResult package func cancel(_ id: UInt64) -> Bool {
        let count = events.count
        events.removeAll { event in
            switch event {
            case .answered(id, _), .failed(id, _): true
            default: false
            }
        }
        guard let index = exchanges.firstIndex(where: { $0.id == id && !$0.isAbandoned }) else {
            return events.count < count
        }
        exchanges[index].isAbandoned = true
        abandoned += 1
        if abandoned > Self.abandonedLimit { resetOldestAbandoned() }
        return true
    }

    private func resetOldestAbandoned() {
        guard let index = exchanges.firstIndex(where: \.isAbandoned) else { return }
        library.reset(remove(at: index).stream)
        pump()
    }

    private func remove(at index: Int) -> HTTP2Exchange {
        let exchange = exchanges.remove(at: index)
        if exchange.isAbandoned { abandoned -= 1 }
        return exchange
    }

    // MARK: Bytes and events

    /// Takes bytes from the server, in any pieces. They are ignored after the end of the connection.
    package func receive(_ bytes: Span<UInt8>) {
        guard !hasEnded, !bytes.isEmpty else { return }
        if !hasStarted {
            // A frame's length has three octets and is at most 16 KiB (RFC 9113 §4.2), so the first octet is 0. Any
            // other protocol is recognised by it at once, without waiting for the nine octets of a frame's header.
            guard bytes[0] == 0 else { return end(.notHTTP2) }
            hasStarted = true
        }
        do throws(HTTP2Error) {
            try library.receive(bytes)
        } catch {
            return end(error)
        }
        pump()
    }

    /// The server has closed the connection, or it was lost.
    package func endOfStream() { end(.closed) }

    /// The bytes to send to the server; empty if there are none.
    package func takeOutput() -> [UInt8] {
        // While the output has room, it contains all frames. Otherwise further frames wait in the library.
        let isFull = output.count >= Self.backlogLimit
        defer { if isFull { pump() } }
        return exchange(&output, with: [])
    }

    package func nextEvent() -> HTTP2Event? { events.isEmpty ? nil : events.removeFirst() }

    /// Whether the connection can be closed: there is nothing to send and nothing to read.
    package var isFinished: Bool { output.isEmpty && (hasEnded || library.isFinished) }

    private func pump() {
        do throws(HTTP2Error) {
            while output.count < Self.backlogLimit, try library.send(into: &output) {}
        } catch {
            end(error)
        }
    }

    /// - Parameter keepingOutput: True while nghttp2 writes to `output`, which must not be touched then (exclusive
    ///   access).
    private func end(_ error: HTTP2Error, keepingOutput: Bool = false) {
        guard !hasEnded else { return }
        hasEnded = true
        if !keepingOutput { output = [] }
        for exchange in exchanges where !exchange.isAbandoned { events.append(.failed(exchange.id, .lost)) }
        (exchanges, abandoned) = ([], 0)
        events.append(.ended(error))
    }

    // MARK: Callbacks of the library

    override func beganHead(_ stream: Int32) {
        update(stream) { exchange throws(HTTPError) in try exchange.beginHead() }
    }

    override func receive(_ stream: Int32, field name: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
        update(stream) { exchange throws(HTTPError) in try exchange.receive(field: name, value) }
    }

    override func receive(_ stream: Int32, body bytes: Span<UInt8>) {
        guard let index = index(of: stream), !exchanges[index].isAbandoned else { return }
        update(stream) { exchange throws(HTTPError) in try exchange.receive(body: bytes) }
    }

    /// A cancelled request has no body left. The end of its body is never sent, since its stream is reset.
    override func nextPart(of stream: Int32, _ limit: Int) -> (ArraySlice<UInt8>, isLast: Bool) {
        guard let index = index(of: stream) else { return ([], true) }
        return (exchanges[index].nextPart(limit), exchanges[index].isSent)
    }

    /// Passes input of its stream to an exchange. An error in the input ends the exchange, and data for an unknown
    /// stream is dropped. The limits of a head apply to an abandoned exchange, too.
    /// - Returns: Whether the exchange goes on.
    @discardableResult
    private func update(_ stream: Int32, _ take: (inout HTTP2Exchange) throws(HTTPError) -> Void) -> Bool {
        guard let index = index(of: stream) else { return false }
        do throws(HTTPError) {
            try take(&exchanges[index])
            return true
        } catch {
            library.reset(stream)
            fail(index, .response(error))
            return false
        }
    }

    override func completed(_ stream: Int32) {
        guard let index = index(of: stream) else { return }
        let exchange = remove(at: index)
        frames = 0
        // A server may answer before it has read the whole request, whose rest it need not read then (RFC 9113 §8.1).
        if !exchange.isSent { library.reset(stream) }
        guard !exchange.isAbandoned else { return }
        if let response = exchange.response {
            events.append(.answered(exchange.id, response))
        } else {
            events.append(.failed(exchange.id, .response(.badHeader)))
        }
    }

    override func wasReset(_ stream: Int32, _ code: HTTP2Code) {
        guard let index = index(of: stream) else { return }
        fail(index, code == .refusedStream ? .refused : .reset(code))
    }

    /// A stream is closed without an earlier callback: the server's GOAWAY means that the request was not processed, or
    /// the response is malformed.
    override func closed(_ stream: Int32, _ code: HTTP2Code) {
        guard let index = index(of: stream) else { return }
        fail(index, code == .refusedStream ? .refused : .response(.badHeader))
    }

    override func wentAway(_ code: HTTP2Code) {
        guard !isGoingAway else { return }
        isGoingAway = true
        events.append(.goingAway(code))
    }

    override func terminated(_ error: HTTP2Error) { end(error, keepingOutput: true) }

    private func fail(_ index: Int, _ failure: HTTP2Failure) {
        let exchange = remove(at: index)
        if !exchange.isAbandoned { events.append(.failed(exchange.id, failure)) }
    }

    private func index(of stream: Int32) -> Int? {
        var (low, high) = (0, exchanges.count)
        while low < high {
            let middle = (low + high) / 2
            if exchanges[middle].stream < stream { low = middle + 1 } else { high = middle }
        }
        return low < exchanges.count && exchanges[low].stream == stream ? low : nil
    }
}
