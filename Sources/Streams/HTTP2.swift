import Base
package import HTTP

/// HTTP/2 on the client's side (RFC 9113): many requests at once, answered in any order.
package final class HTTP2: ClientConversation {
    /// Nil if there was no memory for the session, so that no request is taken.
    private let session: HTTP2Session?
    private let makeRequest: ([UInt8]) -> HTTP2Request?

    /// - Parameters:
    ///   - bodyLimit: The longest body of a response, in octets.
    ///   - makeRequest: Makes an HTTP request from the octets of a request; nil if they do not fit.
    package init(bodyLimit: Int, makeRequest: @escaping ([UInt8]) -> HTTP2Request?) {
        session = try? HTTP2Session(bodyLimit: bodyLimit)
        self.makeRequest = makeRequest
    }

    package var room: Int { session?.room ?? 0 }

    package var mostAtOnce: Int { session?.mostAtOnce ?? 0 }

    package var mayTakeMore: Bool { session?.mayTakeMore ?? true }

    package var isIdle: Bool { session?.isIdle ?? true }

    /// A request that cannot be sent gets no answer; its owner's deadline ends it.
    package func open(_ request: [UInt8], as id: RequestID) {
        if let request = makeRequest(request) { _ = session?.open(request, as: id) }
    }

    package func cancel(_ id: RequestID) { session?.cancel(id) }

    package func receive(_ bytes: Span<UInt8>, into events: inout [ConversationEvent]) throws(ConversationFailure) {
        session?.receive(bytes)
        try takeEvents(into: &events)
    }

    package func endOfStream(isCut: Bool, into events: inout [ConversationEvent]) throws(ConversationFailure) {
        session?.endOfStream()
        // The stream reports the end of the connection, so errors are not needed here.
        do throws(ConversationFailure) { try takeEvents(into: &events) } catch {}
    }

    private func takeEvents(into events: inout [ConversationEvent]) throws(ConversationFailure) {
        while let event = session?.nextEvent() {
            switch event {
            case .answered(let id, let response): events.append(.answered(id, .http(response)))
            case .failed(let id, .refused): events.append(.refused(id))
            // The event of the connection's end covers these requests.
            case .failed(_, .lost): break
            case .failed(let id, .reset(let code)):
                events.append(.givenUp(id, ConversationFailure(HTTP2Failure.reset(code).description)))
            case .failed(let id, let failure):
                events.append(.failed(id, ConversationFailure(failure.description)))
            case .goingAway: events.append(.goingAway)
            case .ended(let error): throw ConversationFailure(error.description)
            }
        }
    }

    package func takeOutput() -> [UInt8] { session?.takeOutput() ?? [] }
}
