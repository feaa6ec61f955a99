import HTTP

/// HTTP/1.1 on the client's side: whole requests, one at a time.
///
/// Bytes that come unsolicited, or after a response, would be taken for the answer to the next request, and so on for
/// each later one. So after such bytes no further request is taken.
package final class HTTP1: ClientConversation {
    private var reader = HTTPResponseReader()
    private var request: RequestID?
    private var output: [UInt8] = []
    package private(set) var mayTakeMore = true

    package init() {}

    package var room: Int { request == nil && mayTakeMore ? 1 : 0 }
    package var mostAtOnce: Int { 1 }

    package var isIdle: Bool { request == nil && reader.isIdle }

    package func open(_ request: [UInt8], as id: RequestID) {
        precondition(room > 0)
        self.request = id
        output = request
    }

    package var hasBegun: Bool { !reader.isIdle }

    package func receive(_ bytes: Span<UInt8>, into events: inout [ConversationEvent]) throws(ConversationFailure) {
        guard request != nil else { throw ConversationFailure("unsolicited bytes") }
        try report(into: &events) { reader throws(HTTPError) in try reader.receive(bytes) }
    }

    package func endOfStream(isCut: Bool, into events: inout [ConversationEvent]) throws(ConversationFailure) {
        mayTakeMore = false
        try report(into: &events) { reader throws(HTTPError) in try reader.endOfStream(isCut: isCut) }
    }

    /// Reports a response that the reader gives. A response counts whatever follows, since it was complete before.
    private func report(
        into events: inout [ConversationEvent],
        _ read: (inout HTTPResponseReader) throws(HTTPError) -> HTTPResponse?
    ) throws(ConversationFailure) {
        let response: HTTPResponse?
        do throws(HTTPError) { response = try read(&reader) } catch { throw ConversationFailure(error.description) }
        guard let response, let request else { return }
        self.request = nil
        if !response.keepAlive || !reader.isIdle { mayTakeMore = false }
        events.append(.answered(request, .http(response)))
    }

    package func takeOutput() -> [UInt8] { exchange(&output, with: []) }
}
