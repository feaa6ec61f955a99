import Base
package import HTTP

/// HTTP/2 as a client speaks it (RFC 9113): many requests at once, answered in any order.
package struct HTTP2: Conversation {
    /// Nil when there was no memory for it: then it takes nothing.
    private let session: HTTP2Session?
    private let makeRequest: ([UInt8]) -> HTTP2Request?
    private var underWay = 0
    private var isGoingAway = false

    /// - Parameters:
    ///   - bodyLimit: octets of a response's body.
    ///   - makeRequest: what goes out for the octets of a request; nil if they do not fit one.
    package init(bodyLimit: Int, makeRequest: @escaping ([UInt8]) -> HTTP2Request?) {
        session = try? HTTP2Session(bodyLimit: bodyLimit)
        self.makeRequest = makeRequest
    }

    package var room: Int { session?.room ?? 0 }

    package var mayTakeMore: Bool { !isGoingAway }

    package var isIdle: Bool { underWay == 0 }

    /// One that cannot be sent gets no answer, and its owner's time runs out.
    package mutating func open(_ request: [UInt8], as id: RequestID) {
        guard let request = makeRequest(request), session?.open(request, as: id) ?? false else { return }
        underWay += 1
    }

    package mutating func cancel(_ id: RequestID) -> Bool {
        if session?.cancel(id) ?? false { underWay -= 1 }
        return true
    }

    package mutating func receive(
        _ bytes: Span<UInt8>, into events: inout [ConversationEvent]
    ) throws(ConversationFailure) {
        session?.receive(bytes)
        try takeEvents(into: &events)
    }

    package mutating func endOfStream(
        isCut: Bool, into events: inout [ConversationEvent]
    ) throws(ConversationFailure) {
        session?.endOfStream()
        isGoingAway = true
        // The end of the connection is told by the stream.
        do throws(ConversationFailure) { try takeEvents(into: &events) } catch {}
    }

    private mutating func takeEvents(into events: inout [ConversationEvent]) throws(ConversationFailure) {
        while let event = session?.nextEvent() {
            switch event {
            case .answered(let id, let response):
                underWay -= 1
                events.append(.answered(id, .http(response)))
            case .failed(let id, .refused):
                underWay -= 1
                events.append(.refused(id))
            // The connection's end says what becomes of it.
            case .failed(_, .lost): underWay -= 1
            case .failed(let id, let failure):
                underWay -= 1
                events.append(.failed(id, ConversationFailure(failure.description)))
            case .goingAway:
                isGoingAway = true
                events.append(.goingAway)
            case .pong: break
            case .ended(let error): throw ConversationFailure(error.description)
            }
        }
    }

    package mutating func takeOutput() -> [UInt8] {
        var output: [UInt8] = []
        session?.takeOutput(into: &output)
        return output
    }

    package mutating func ping() -> Bool {
        session?.ping()
        return session != nil
    }
}
