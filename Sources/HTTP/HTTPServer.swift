import Base

/// A server's side of one HTTP connection as octets in and octets out. The server is confined to its owner.
///
/// After each call, take the requests and the output until neither is left.
package protocol HTTPServer: AnyObject {
    /// Takes octets from the client, in any pieces.
    func receive(_ bytes: Span<UInt8>)
    /// Whether there may be a request to take.
    var hasRequest: Bool { get }
    /// The next request that is complete or exceeds a limit; nil if there is no such request yet.
    func nextRequest() -> HTTPServerRequest?
    /// Answers a request once. The answer is ignored if the client no longer waits for it.
    func answer(_ stream: Int32, _ answer: HTTPAnswer)
    /// Announces to the client, if HTTP can, that no more requests are taken; earlier requests are still answered.
    func announceEnd()
    /// The octets to send to the client; empty if there are none.
    func takeOutput() -> [UInt8]
    /// Whether the connection is unusable once the output is sent.
    var isFinished: Bool { get }
    /// Stored octets of requests that were not taken yet.
    var held: Int { get }
    /// Octets of answers that cannot be sent before the client takes more.
    var unsent: Int { get }
    /// The number of requests that the server passes on before one of them is answered.
    var mostAtOnce: Int { get }
    /// Whether the client must be read even while no request is taken: its octets announce how much it can receive.
    var mustListen: Bool { get }
}

/// The parts of a request that a DNS server needs.
package struct HTTPServerRequest {
    /// The number by which the request is answered.
    package let stream: Int32
    package internal(set) var method = HTTPMethod.other
    /// The path with the query.
    package internal(set) var path: [UInt8] = []
    /// The value of Content-Type.
    package internal(set) var contentType: [UInt8] = []
    package internal(set) var body: [UInt8] = []
    /// The status of the refusal of a request that exceeds a limit; the other properties are then unusable.
    package internal(set) var refusal: HTTPStatus?

    init(stream: Int32) { self.stream = stream }

    init(_ request: HTTPRequest) {
        (stream, method, path) = (0, request.method, request.target)
        (contentType, body) = (request.contentType, request.body)
    }

    init(refused status: HTTPStatus, stream: Int32 = 0) { (self.stream, refusal) = (stream, status) }
}

/// The parts of an answer that a DNS server sends.
package struct HTTPAnswer {
    package var status: HTTPStatus
    package var contentType: StaticString?
    /// Seconds for which a cache may store the answer (RFC 9111 §5.2.2.1); nil: the answer has no such field.
    package var maximumAge: UInt32?
    /// The value of Allow (RFC 9110 §10.2.1).
    package var allow: StaticString?
    /// The time of the answer (RFC 9110 §6.6.1), by ``HTTPDate/text(_:)``; empty: the answer has no such field.
    package var date: [UInt8]
    package var body: [UInt8]

    package init(
        _ status: HTTPStatus, contentType: StaticString? = nil, maximumAge: UInt32? = nil, allow: StaticString? = nil,
        date: [UInt8] = [], body: [UInt8] = []
    ) {
        (self.status, self.contentType, self.maximumAge) = (status, contentType, maximumAge)
        (self.allow, self.date, self.body) = (allow, date, body)
    }

    /// Passes on the fields except Content-Length: a name in lower case, and a closure that appends the value.
    func addFields(_ add: (_ name: StaticString, _ value: (inout [UInt8]) -> Void) -> Void) {
        if !date.isEmpty { add("date") { $0 += date } }
        if let contentType { add("content-type") { $0.append(contentType) } }
        if let maximumAge {
            add("cache-control") {
                $0.append("max-age=")
                $0.appendDecimal(UInt64(maximumAge))
            }
        }
        if let allow { add("allow") { $0.append(allow) } }
    }
}
